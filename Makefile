# Weir.  Users type make; Meson does the work (meson.build).
#
#   make              build/weir, build/libweir.so, build/libweir.a
#   make redis-module build/redis-module/weir.so, for Redis's loadmodule
#   make nginx        build/nginx/ngx_http_weir_module.so, for nginx's load_module
#   make run          build, and start the server with a copy of examples/rules.yaml:
#                     127.0.0.1:7379 for Redis clients, 7380 for HTTP.  Other ports, or any
#                     option of weir serve:
#                     make run OPTIONS='--resp 127.0.0.1:7479 --http 127.0.0.1:7480'
#   make fleet        build, and show a fleet on this host: a Redis, three nodes and a load, drawn
#                     live while you kill them
#   make run-nginx    nginx with the module on 127.0.0.1:7381, a backend and a status page
#                     (PORT=N: on another port, with a folder of its own)
#   make demo         build, and show every algorithm over one burst of traffic
#   make quick        the tests that take seconds
#   make test         all tests, again under ASan + UBSan and under TSan
#   make test T=NAME  the tests with NAME in their name, or of the suite NAME: unit, e2e, tree
#   make check        longer tests: more seeds, more kills, the fuzzers for a while
#   make bench        the figures, ours beside our peers': some minutes, 4 GB of memory, 2 GB of
#                     disk (bench/run.sh measures parts of it too)
#   make fuzz         every fuzzer for FUZZ_SECONDS (60) each
#   make mutants      flip comparisons and constants in lib/algo; a test must notice each
#                     (ROOM=guard: in another folder of lib; LIMIT=100: a sample)
#   make pictures     draw docs/picture-*.svg with the real code
#   make thousand     model a fleet of a thousand nodes; the figures, and docs/picture-thousand.svg
#   make reference    write docs/serve-reference.md, the option tables of docs/rules.md and the
#                     tests of docs/capabilities.md
#   make figures      write docs/figures.md from the last make bench
#   make amalgamation build/amalgamation/weir.c and its headers
#   make install      to PREFIX (/usr/local), under DESTDIR if set

BUILD  = build
PREFIX = /usr/local
FUZZ_SECONDS = 60
SETUP  = meson setup '--prefix=$(PREFIX)'

.PHONY: all redis-module nginx run-nginx run fleet demo quick test check bench fuzz mutants \
        pictures thousand reference figures amalgamation install clean
.DEFAULT_GOAL = all

all: $(BUILD)/build.ninja
	@scripts/build.sh $(BUILD) product

$(BUILD)/build.ninja:
	@scripts/packages.sh build
	@$(SETUP) $(BUILD) >/dev/null

redis-module: $(BUILD)/build.ninja
	@scripts/build.sh $(BUILD) redis-module/weir.so

nginx: $(BUILD)/build.ninja
	@scripts/packages.sh build nginx
	@grep -q ngx_http_weir $(BUILD)/build.ninja || $(SETUP) --reconfigure $(BUILD) >/dev/null
	@scripts/build.sh $(BUILD) nginx/ngx_http_weir_module.so nginx/ngx_stream_weir_module.so

run-nginx: nginx
	@exec scripts/run-nginx.sh $(BUILD) $(PORT)

run: $(BUILD)/build.ninja
	@scripts/build.sh $(BUILD) weir
	@mkdir -p $(BUILD)/run
	@cp -n examples/rules.yaml $(BUILD)/run/rules.yaml
	@exec $(BUILD)/weir serve --rules $(BUILD)/run/rules.yaml --table $(BUILD)/run/weir.table \
		$(OPTIONS)

fleet: $(BUILD)/build.ninja
	@scripts/packages.sh build fleet
	@scripts/build.sh $(BUILD) weir
	@scripts/fleet.py $(BUILD)/weir

demo: $(BUILD)/build.ninja
	@scripts/build.sh $(BUILD) weir
	@$(BUILD)/weir demo

quick:
	@scripts/packages.sh build test
	@scripts/test.sh $(or $(T),--quick)

test:
	@scripts/packages.sh build test
	@scripts/test.sh $(T)

check:
	@scripts/packages.sh build test
	@scripts/test.sh --long

bench: $(BUILD)/build.ninja
	@scripts/packages.sh build bench
	@scripts/build.sh $(BUILD) bench
	@bench/run.sh $(BUILD)

fuzz:
	@scripts/packages.sh build test
	@scripts/fuzz.sh $(FUZZ_SECONDS)

mutants:
	@scripts/packages.sh build test
	@scripts/mutants.py $(ROOM) $(if $(LIMIT),--limit $(LIMIT))

pictures: all nginx
	@scripts/packages.sh bench
	@scripts/pictures.py $(BUILD)
	@scripts/nginx-pictures.py $(BUILD)

thousand: $(BUILD)/build.ninja
	@scripts/packages.sh build
	@scripts/build.sh $(BUILD) bench/bench-thousand
	@$(BUILD)/bench/bench-thousand | tee $(BUILD)/thousand.tsv
	@scripts/thousand-picture.py $(BUILD)/thousand.tsv

reference: all
	@scripts/reference.py $(BUILD)
	@scripts/capabilities.py
	@scripts/options.py $(BUILD)

figures:
	@scripts/figures.py $(BUILD)/bench-out/figures.tsv

amalgamation:
	@scripts/packages.sh build
	@scripts/amalgamation.py $(BUILD)/amalgamation

# Built after the prefix is set: Meson installs by what the last build wrote down.
install: $(BUILD)/build.ninja
	@meson configure $(BUILD) '--prefix=$(PREFIX)'
	@scripts/build.sh $(BUILD) product
	@DESTDIR="$(DESTDIR)" meson install -C $(BUILD) --no-rebuild --quiet
	@echo "installed below $(DESTDIR)$(PREFIX)"

clean:
	@rm -rf $(BUILD)
