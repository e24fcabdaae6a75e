# %% [markdown]
# # A table: synthetic rows, missing cells, unusual rows
#
# `cafe` is a generated table of orders in a café, with dates, categories, prices and missing cells. A path of a CSV or Parquet file, or a pandas
# DataFrame, works in the same way. Needs the extra `tables`.

# %%
import unordinal

run = unordinal.fit("arm", "cafe", steps=400, progress=False)
print(run.score())

# %% [markdown]
# The model knows all orders of the columns, so that any of them can be given. Draw rows that satisfy conditions:

# %%
print(run.sample(4, where=("weather=hot", "drink=tea"), seed=0).to_string(index=False))

# %% [markdown]
# Compare it with a tree, which is exact and counted in a second, on the same rows:

# %%
tree = unordinal.fit("chow-liu", "cafe", progress=False)
print(unordinal.compare(run, tree))

# %% [markdown]
# Fill missing cells, with the likeliest value of each:

# %%
rows = run.sample(3, seed=1)
rows.loc[:, "weather"] = None
print(run.fill_rows(rows).to_string(index=False))

# %% [markdown]
# Predict a column from the others, as probabilities:

# %%
print(run.predict(rows, "weather").round(3).to_string(index=False))

# %% [markdown]
# Which rows are unusual? We make one: a small tea for 8.00. `bits` are those of the row, and `cell` is the one that is likeliest wrong.

# %%
rows = run.sample(5, seed=3)
rows.loc[0, ["drink", "size", "pastry", "price"]] = ["tea", "small", "none", 8.0]
print(run.measure_rows(rows).to_string(index=False))
