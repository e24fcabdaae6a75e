# Two commands do everything: `make demo` and `make test`. Each builds .venv first where it is missing.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: setup demo test test-all test-web soak audit lint bench docs dist clean

setup: $(STAMP)

# A stock Debian may lack python3-venv (and so ensurepip): then make an empty environment and let the outer pip fill it.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "unordinal needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 2; }
	@test -x $(BIN)/python && $(BIN)/python -m pip --version >/dev/null 2>&1 || \
	  { rm -rf .venv; $(PYTHON) -m venv .venv >/dev/null 2>&1 || \
	    { rm -rf .venv; $(PYTHON) -m venv --without-pip .venv && \
	      $(PYTHON) -m pip --python $(BIN)/python install --quiet pip; }; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[web,hub,onnx,tables,compress,tensorboard,dev,docs]'
	@touch $@

demo: setup
	$(BIN)/unordinal demo

# Two workers of one thread each: most tests are too small for two threads to share.
test: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile

# The last line's trainings are held to figures of both cores.
test-all: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile -m 'slow or not slow' --timeout 3600 \
	  --ignore tests/test_acceptance.py
	$(BIN)/python -m pytest -m 'slow or not slow' --timeout 3600 tests/test_acceptance.py

# Every panel of the page in a real browser, and abuse of the real server.
test-web: setup
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || \
	  { apt-get update >/dev/null 2>&1; apt-get install -y --no-install-recommends chromium >/dev/null 2>&1; } || \
	  { echo "chromium is not here and apt-get may not install it; install it by hand and run this again"; exit 2; }
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile -m 'slow or not slow' tests/web

# Train, kill, resume, evaluate, sample and serve for an hour, and compare with runs that nothing happened to.
MINUTES ?= 60
soak: setup
	$(BIN)/python tests/soak.py --minutes $(MINUTES)

# Known holes in the packages that this one needs.
audit: setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[audit]'
	@$(BIN)/python -m pip freeze --exclude-editable | grep '==' | sed 's/+.*//' > .venv/frozen.txt
	$(BIN)/python -m pip_audit --strict --no-deps --disable-pip -r .venv/frozen.txt || \
	  { echo "the audit found holes, or the database of them cannot be reached: see above"; exit 2; }

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: setup
	$(BIN)/python benchmarks/diffusion_loss.py
	$(BIN)/python benchmarks/sampling_step.py
	$(BIN)/python benchmarks/sampler_truth.py
	$(BIN)/python benchmarks/training_throughput.py
	$(BIN)/python benchmarks/mixture_inverse.py
	$(BIN)/python benchmarks/flow_sampling.py
	$(BIN)/python benchmarks/flow_training.py
	$(BIN)/python benchmarks/straight_through.py
	$(BIN)/python benchmarks/unet.py
	$(BIN)/python benchmarks/map_flows.py

docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "The documentation is in build/docs/index.html"

# A wheel and a source archive, both with the weights of the bundled models.
dist: setup
	rm -rf dist
	$(BIN)/python -m hatchling build -d dist
	@ls -l dist

clean:
	rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache
