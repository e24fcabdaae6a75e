# %% [markdown]
# # Maps: draw scenes and fill a hole
#
# Maps are grids of classes: land cover, segmentation, game levels. The package has a model of land cover, a masked diffusion, to begin with.

# %%
import unordinal

run = unordinal.load("pretrained:landcover")
print(run.spec.num_classes, "classes, maps of", " x ".join(map(str, run.spec.event_shape)))

# %% [markdown]
# Draw four maps with 64 calls of the network each. More calls make better samples.

# %%
x = run.sample(4, steps=64, seed=1)
print(x.shape, x.min().item(), x.max().item())

# %%
import matplotlib.pyplot as plt
from matplotlib.colors import ListedColormap

from unordinal.evaluate.pictures import palette_of

colours = ListedColormap([colour for _, colour in palette_of(run.spec)])
figure, axes = plt.subplots(1, 4, figsize=(12, 2))
for axis, one in zip(axes, x, strict=True):
    axis.imshow(one, cmap=colours, vmin=0, vmax=colours.N - 1)
    axis.axis("off")
figure.savefig("maps-samples.png", dpi=80, bbox_inches="tight")

# %% [markdown]
# ![Four maps](maps-samples.png)
#
# Erase a part of a map, mark it with -1, and let the model fill it. Pixels that are known stay as they are.

# %%
known = x[0].clone()
known[8:24, 16:48] = -1
filled, _ = run.fill_map(known, num=3, steps=32)
assert bool((filled[:, known >= 0] == known[known >= 0]).all())

figure, axes = plt.subplots(1, 4, figsize=(12, 2))
for axis, one in zip(axes, [known, *filled], strict=True):
    axis.imshow(one, cmap=colours.with_extremes(under="white"), vmin=0, vmax=colours.N - 1)
    axis.axis("off")
figure.savefig("maps-filled.png", dpi=80, bbox_inches="tight")

# %% [markdown]
# ![A map with a hole, and three ways to fill it](maps-filled.png)
#
# A model of your own maps takes one line. `streets` are scenes that are drawn on the spot; a few steps only show how it is done, twelve minutes make good scenes:

# %%
own = unordinal.fit("multinomial", "streets", steps=40, batch_size=8, progress=False, **{"net.width": 16})
print(own.score(num_examples=32))

# %% [markdown]
# On the command line: `unordinal train multinomial --data folder_of_pngs/ --minutes 12 --out runs/maps`.
