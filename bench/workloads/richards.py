"""Tasks with packet queues, run by a scheduler: exercises method calls and attributes."""

import collections
import random


class Packet:
    __slots__ = ("destination", "payload", "hops")

    def __init__(self, destination, payload):
        self.destination = destination
        self.payload = payload
        self.hops = 0


class Task:
    def __init__(self, number, scheduler):
        self.number = number
        self.scheduler = scheduler
        self.queue = collections.deque()
        self.handled = 0

    def take(self, packet):
        self.queue.append(packet)

    def step(self):
        if not self.queue:
            return False
        packet = self.queue.popleft()
        self.handled += 1
        packet.hops += 1
        if packet.hops < 8:
            packet.destination = (packet.destination * 7 + packet.payload) % len(self.scheduler.tasks)
            self.scheduler.tasks[packet.destination].take(packet)
        return True


class Scheduler:
    def __init__(self, count):
        self.tasks = [Task(number, self) for number in range(count)]

    def run(self):
        busy = True
        while busy:
            busy = False
            for task in self.tasks:
                busy = task.step() or busy


random.seed(2)
scheduler = Scheduler(64)
for _ in range(240):
    for n in range(3_000):
        scheduler.tasks[n % 64].take(Packet(n % 64, random.randrange(64)))
    scheduler.run()
print(sum(task.handled for task in scheduler.tasks))
