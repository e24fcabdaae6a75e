# %% [markdown]
# # A model of your own, checked by enumeration
#
# Any module that takes noisy classes and a time and gives logits is a denoiser. We build a small one, train it as a diffusion, and compare its bound
# with the true likelihood on a space that is small enough to enumerate.

# %%
import itertools

import torch
from torch import nn

import unordinal


class Mlp(nn.Module):
    """Gives logits (B, L, K) for noisy classes (B, L) and times (B,) in (0, 1]."""

    def __init__(self, num_classes: int, length: int, width: int = 64):
        super().__init__()
        self.embed = nn.Embedding(num_classes, 8)
        self.net = nn.Sequential(nn.Linear(8 * length + 1, width), nn.SiLU(), nn.Linear(width, length * num_classes))

    def forward(self, z: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        h = torch.cat([self.embed(z).flatten(1), time[:, None]], dim=1)
        return self.net(h).view(*z.shape, -1)


# %% [markdown]
# The data: two letters out of three, repeated. There are 9 such rows, all equally likely, so that the truth is log2(9) / 4 = 0.792 bits per symbol.

# %%
torch.manual_seed(0)
x = torch.randint(0, 3, (2000, 2)).repeat(1, 2)
noise = unordinal.UniformNoise(3, unordinal.cosine_schedule(20))
model = unordinal.Diffusion(Mlp(3, 4), noise=noise, event_shape=(4,))
run = unordinal.fit(model, x, steps=3000, lr=3e-3, optimizer="adamw", progress=False)
print(run.score(repeats=200))

# %% [markdown]
# The bound is an average over times and noise, so it has to be averaged over many draws. Enumerate all 81 rows: if the bound is one, its exponentials sum to
# at most 1.

# %%
space = torch.tensor(list(itertools.product(range(3), repeat=4)))
with torch.no_grad():
    bound = torch.stack([model.elbo(space.repeat(200, 1)).double().view(200, 81).mean(0) for _ in range(50)]).mean(0)
print(f"sum of exp(bound) over all rows: {bound.exp().sum():.3f}")

# %% [markdown]
# Do the samples have the distribution of the data? Each of the nine rows should come up in about a ninth of them:

# %%
drawn = model.sample(4000)
good = (drawn[:, :2] == drawn[:, 2:]).all(1)
shares = torch.bincount(drawn[good, 0] * 3 + drawn[good, 1], minlength=9) / len(drawn)
print(f"{good.double().mean():.3f} are repeated; shares of the nine rows: {[round(float(s), 3) for s in shares]}")

# %% [markdown]
# The library's own models are tested in this way, with exact arithmetic in place of draws. The guide *Models of your own* shows networks, noise,
# bijections, and how a model of yours gets a name on the command line.
