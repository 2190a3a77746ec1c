# The command line in a container; run as you, so that it can write to the present folder:
#   docker build -t dagpost . && docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/data" dagpost fit table.csv
FROM python:3.12-slim
WORKDIR /build
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
RUN pip install --no-cache-dir --constraint constraints.txt '.[report]' \
 && rm -rf /build \
 && useradd --create-home user
USER user
WORKDIR /data
ENTRYPOINT ["dagpost"]
CMD ["--help"]
