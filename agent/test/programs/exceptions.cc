// exceptions.cc - C++ throws exceptions through sampled allocations, catches bad_alloc and runs a new_handler.
#include <cstdio>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static int handled;
static void handler()
{
    if (++handled == 3)
        std::set_new_handler(nullptr);
}

static void work(int seed)
{
    for (int i = 0; i < 3000; i++) {
        try {
            std::vector<std::string> strings;
            for (int k = 0; k < 20; k++)
                strings.push_back(std::string(100 + (seed + i * k) % 500, 'x'));
            if (i % 3 == 0)
                throw std::runtime_error(strings[5]);
        } catch (const std::runtime_error &error) {
            if (error.what()[0] != 'x')
                std::abort();
        }
    }
}

int main()
{
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back(work, i);
    for (auto &thread : threads)
        thread.join();
    std::set_new_handler(handler);
    volatile std::size_t huge = ~std::size_t(0) / 4;
    try {
        char *block = new char[huge];
        std::printf("%p\n", static_cast<void *>(block));
        return 1;
    } catch (const std::bad_alloc &) {
    }
    if (handled != 3)
        return 2;
    std::puts("fine");
}
