"""A small network trained on the CPU."""

import torch

torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(
    torch.nn.Linear(128, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10)
)
optimizer = torch.optim.Adam(model.parameters())
data, target = torch.randn(4096, 128), torch.randint(0, 10, (4096,))
losses = []
for step in range(500):
    rows = torch.randint(0, 4096, (128,))
    loss = torch.nn.functional.cross_entropy(model(data[rows]), target[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(losses[-1] < losses[0])
