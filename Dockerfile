# docker build -t robustgen . && docker run --rm -v "$PWD/out:/home/robustgen/out" robustgen
# The image contains PyAV's wheels, and in them x264 and x265 (GPL, version 2 or later); see NOTICE before you pass it on.
FROM python:3.12-slim AS wheel
WORKDIR /checkout
COPY . .
RUN pip install --no-cache-dir ".[opencv,video]" && robustgen fetch && python scripts/build_wheel.py

FROM python:3.12-slim
RUN useradd --create-home robustgen
WORKDIR /home/robustgen
COPY --from=wheel /checkout/dist dist
# The wheel holds compiled loops, so the first run of a container is as fast as later ones.
RUN pip install --no-cache-dir -c dist/constraints-cp312.txt "$(echo dist/*.whl)[opencv,video,demo]" && rm -r dist
USER robustgen
RUN robustgen fetch
ENTRYPOINT ["robustgen"]
CMD ["make-c", "--dataset", "demo"]
