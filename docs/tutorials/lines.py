# %% [markdown]
# # Lines with labels: names of classes, functions and exceptions
#
# Names, molecules and proteins have different lengths, and often a label. The data set `names` holds the names that the modules of Python's
# standard library define, each with its kind. A table works in the same way: `fit("arm", "molecules.csv", column="smiles", label_column=("rings",))`.

# %%
import unordinal

run = unordinal.fit("arm", "names", steps=800, progress=False)
print(run.spec.labels[0].values)

# %% [markdown]
# The score is that of the lines given their labels.

# %%
print(run.score())

# %% [markdown]
# Draw names of a kind. Classes are written in CamelCase, constants in capitals, functions with underscores:

# %%
for kind in ("class", "constant", "function"):
    print(f"{kind:<10}", run.sample(4, label=f"kind={kind}", seed=2))

# %% [markdown]
# A guidance above 1 makes samples fit the label better, and differ less from each other.

# %%
print(run.sample(4, label="kind=constant", guidance=2, seed=2))

# %% [markdown]
# By Bayes' rule the same model classifies: which kind makes a line likeliest?

# %%
lines = ["BrokenPipeError", "MAX_LENGTH", "read_line"]
found = run.classify(data=lines)
for line, p in zip(lines, found.probabilities, strict=True):
    print(f"{line:<16} {found.label.values[int(p.argmax())]:<10} {float(p.max()):.2f}")
