# The program of a release, what glibc it needs, and nothing else; not as root:
#
#   scripts/release.sh                # on Linux; --target aarch64-unknown-linux-gnu for that platform
#   docker build -t earnest .
#   docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/data" earnest earnest run nupa
#
# The current folder is /data: results are in ./earnest-results, models and questions are named by their path in it. Where the container forbids what
# confines model-written Python, the program says so (docs/sandbox.md). For a GPU: --gpus all, and an image of CUDA's libraries as BASE.
ARG BASE=gcr.io/distroless/cc-debian12:nonroot
FROM debian:bookworm-slim AS release
ARG TARGETARCH=amd64
COPY dist/ /dist/
RUN case "$TARGETARCH" in amd64) cpu=x86_64 ;; arm64) cpu=aarch64 ;; *) echo "no release for $TARGETARCH" >&2; exit 1 ;; esac \
 && mkdir -p /release/data && tar -xzf "/dist/$cpu-unknown-linux-gnu"/earnest-*.tar.gz -C /release --strip-components=1 \
 && /release/earnest --version

FROM ${BASE}
COPY --from=release /release/LICENSE-MIT /release/LICENSE-APACHE /usr/share/doc/earnest/
COPY --from=release /release/earnest /usr/local/bin/earnest
COPY --from=release --chown=65532:65532 /release/data /data
USER 65532:65532
WORKDIR /data
ENV HOME=/data
CMD ["earnest", "--help"]
