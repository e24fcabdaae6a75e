# %% [markdown]
# # Text: train, score, sample, and find what is unusual
#
# We train an autoregressive Transformer on the docstrings of Python's standard library, which are always at hand, and look at what
# its likelihood is good for. Replace `"docs"` by the path of a text of yours.

# %%
import unordinal

run = unordinal.fit("arm", "docs", steps=300, length=64, batch_size=16, progress=False)
print(run.spec.num_classes, "different characters")

# %% [markdown]
# A likelihood is a number of bits. `score` measures it on text that the model has not seen. The error says how far the figure would move with
# other text of the same kind; `exact` says that it is the model's true likelihood and no bound.

# %%
score = run.score(num_examples=400)
print(score)

# %% [markdown]
# Is that good? Counting how often each character follows the two before it is the cheapest model there is:

# %%
import numpy as np

from unordinal.evaluate.counts import CountModel

data = unordinal.load_data("docs", length=64)
train, test = (np.asarray(part.examples(np.arange(len(part)))).reshape(-1) for part in (data.train, data.test))
counts = CountModel(train, data.spec.num_classes, order=2)
print(f"counts of order 2: {counts.bits_per_symbol(test[: 400 * 64]):.3f} bits per character")

# %% [markdown]
# Samples continue a prompt. A temperature below 1 makes them more ordinary.

# %%
for text in run.sample(2, prompt="Return the ", length=60, temperature=0.7, seed=1):
    print(repr(text))

# %% [markdown]
# `bits` tells how surprising every line is. The line that is no docstring stands out:

# %%
lines = [
    "Return the number of items in the list.",
    "Raise an error if the file is missing.",
    "xylophone quartz jumps vexed.",
]
for line, bits in zip(lines, run.bits(lines), strict=True):
    print(f"{bits.per_symbol:.2f} bits per character  {line}")

# %% [markdown]
# Next: `unordinal train arm --data book.txt --minutes 5 --out runs/book` does the same on the command line and keeps the run. With
# `alphabet="bpe:512"` the model reads tokens, which makes it better in the same time.
