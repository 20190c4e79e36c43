import gc
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

activations = {}
history = []


class Texts(Dataset):
    def __init__(self, path):
        self.lines = open(path).readlines()  # leak: TM-L025 TM-L033
        self.labels = [int(line[0]) for line in self.lines]

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, at):
        return self.lines[at], self.labels[at]


def keep(name):
    def hook(module, given, output):
        activations[name] = output  # leak: TM-L017
    return hook


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(10, 10)
        self.states = []

    def forward(self, x):
        h = self.linear(x)
        self.states.append(h)  # leak: TM-L012
        return h


def train(net, loader, optimizer, epochs):
    total = 0
    outputs = []
    for epoch in range(epochs):
        for x, y in loader:
            out = net(x)
            loss = nn.functional.mse_loss(out, y)
            loss.backward(retain_graph=True)  # leak: TM-L013 TM-L014
            optimizer.step()
            total += loss  # leak: TM-L011
            outputs.append(out)  # leak: TM-L012
            torch.cuda.empty_cache()  # leak: TM-L037
        history.append(loss)  # leak: TM-L012
    return total


def evaluate(net, loader):
    net.eval()
    scores = []
    for x, y in loader:
        scores.append(net(x).argmax(1))  # leak: TM-L015
    return torch.cat(scores)


def generate(net, prompt, steps):
    tokens = prompt
    for _ in range(steps):
        logits = net(tokens)
        tokens = torch.cat([tokens, logits[:, -1:].argmax(-1)], dim=1)  # leak: TM-L036
    return tokens


def first_rows(path):
    big = torch.load(path)
    return big[:10]


def main():
    gc.disable()  # leak: TM-L038
    loader = DataLoader(Texts("train.txt"), num_workers=4)
    net = Net()
    net.linear.register_forward_hook(keep("linear"))
    train(net, loader, torch.optim.SGD(net.parameters(), 0.1), 3)
