# docker build -t robustgen . && docker run --rm -v "$PWD/out:/home/robustgen/out" robustgen
FROM python:3.12-slim
RUN useradd --create-home robustgen
WORKDIR /home/robustgen
COPY --chown=robustgen . checkout
RUN pip install --no-cache-dir "./checkout[opencv,video,demo]" && rm -r checkout
USER robustgen
# The photographs of frost, and the compiled loops: the first run of a container is as fast as later ones.
RUN robustgen fetch && robustgen warm
ENTRYPOINT ["robustgen"]
CMD ["make-c", "--dataset", "demo"]
