# docker build -t robustgen . && docker run --rm -v "$PWD/out:/home/robustgen/out" robustgen
FROM python:3.12-slim
RUN useradd --create-home robustgen
WORKDIR /home/robustgen
COPY --chown=robustgen . checkout
RUN pip install --no-cache-dir ./checkout \
 && pip install --no-cache-dir --no-deps imagecorruptions==1.1.2 \
 && rm -r checkout
USER robustgen
ENTRYPOINT ["robustgen"]
CMD ["make-c", "--dataset", "demo"]
