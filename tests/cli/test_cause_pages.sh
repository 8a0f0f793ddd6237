#!/usr/bin/env bash
# docs/causes is generated: it must be what signatures/causes says.
exec python3 "$SW_SOURCE_DIR/scripts/cause-pages" --check
