"""PyTorch programs."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


def train_epoch(net, data, opt):
    running = 0.0
    history = []
    preds = {}
    for step, (images, labels) in enumerate(data):
        opt.zero_grad()
        logits = net(images)
        loss = F.cross_entropy(logits, labels)
        loss.backward()
        opt.step()
        running = running + loss  # leak: TM-L011
        history.append(loss)  # leak: TM-L012
        preds[step] = logits  # leak: TM-L012
    return running, history, preds


class Trainer:
    def __init__(self, model, optimizer):
        self.model = model
        self.optimizer = optimizer
        self.criterion = nn.MSELoss()
        self.epoch_loss = 0
        self.metrics = []

    def training_step(self, batch):
        out = self.model(batch.x)
        loss = self.criterion(out, batch.y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.epoch_loss += loss  # leak: TM-L011
        self.metrics.append({"loss": loss, "norm": out.norm()})  # leak: TM-L012
        return loss


def gan(generator, discriminator, loader, opt_g):
    for real in loader:
        opt_g.zero_grad()
        fake = generator(real.size(0))
        g_loss = -discriminator(fake).mean()
        g_loss.backward(retain_graph=True)  # leak: TM-L013
        opt_g.step()


def fit(model, batches):
    optimizer = torch.optim.AdamW(model.parameters())
    for epoch in range(1000):
        for x, y in batches:
            loss = F.mse_loss(model(x), y)
            loss.backward()  # leak: TM-L014
            optimizer.step()
            torch.cuda.empty_cache()  # leak: TM-L037


class Encoder(nn.Module):
    def forward(self, x):
        return x


encoder = Encoder().eval()


def validate(model, loader):
    model.eval()
    scores = []
    for x, y in loader:
        out = model(x)  # leak: TM-L015
        scores.append(out)
    return torch.cat(scores)


@app.post("/embed")
def embed(payload: dict):
    vec = encoder(torch.tensor(payload["ids"]))  # leak: TM-L015
    return vec.tolist()


def predict(self, image):
    return self.model(image).argmax()  # leak: TM-L015


def saliency(model, image):
    grads = []

    def keep(module, grad_in, grad_out):
        grads.append(grad_out[0])  # leak: TM-L017

    model.conv1.register_full_backward_hook(keep)  # leak: TM-L016
    model(image).sum().backward()
    return grads


def extract(model, loader):
    feats = {}
    for batch in loader:
        model.fc.register_forward_hook(lambda m, i, o: feats.update(x=o.detach()))  # leak: TM-L016
        model(batch)
    return feats


class Probe:
    def __init__(self, model):
        self.outputs = []
        model.layer.register_forward_hook(self.hook)

    def hook(self, module, args, output):
        self.outputs.append(output)  # leak: TM-L017


captured = {}


def capture(name):
    def fn(module, inp, out):
        captured[name] = out  # leak: TM-L017

    return fn


def instrument(model):
    for name, layer in model.named_modules():
        layer.register_forward_hook(capture(name))


class TextData(Dataset):
    def __init__(self, files):
        self.texts = [open(f).read() for f in files]  # leak: TM-L033
        self.labels = {}

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, i):
        return self.texts[i]


def loaders(files):
    return DataLoader(TextData(files), batch_size=8, num_workers=4)


def collect(model, stream):
    allout = torch.empty(0)
    with torch.no_grad():
        for x in stream:
            allout = torch.cat([allout, model(x)])  # leak: TM-L036
    return allout
