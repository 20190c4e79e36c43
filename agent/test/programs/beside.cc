// beside.cc - runs under another allocator, with or without our agent: churns the malloc family and operator
// new in four threads, keeps 256 MiB in blocks so large that each is sampled, and prints "fine".
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

static void churn()
{
    for (int i = 0; i < 20000; i++) {
        std::string text(100 + i % 1000, 'x');
        std::unique_ptr<char[]> block(new char[i % 5000 + 1]);
        void *moved = realloc(malloc(64), 3000);
        void *aligned = nullptr;
        if (!moved || posix_memalign(&aligned, 64, 100) != 0 || !block || text.size() < 100)
            abort();
        free(moved);
        free(aligned);
        free(aligned_alloc(64, 128));
        free(calloc(7, 99));
        free(strdup(text.c_str()));
        free(reallocarray(malloc(10), 30, 40));
    }
}

int main()
{
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back(churn);
    for (auto &thread : threads)
        thread.join();
    static void *kept[4];
    for (auto &block : kept)
        block = malloc(64 << 20);
    puts("fine");
    return kept[0] ? 0 : 1;
}
