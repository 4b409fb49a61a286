# The same Node that package.json brings for development; a test compares the two.
FROM node:26.10.0-alpine AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY LICENSE ./
COPY scripts/build.ts ./scripts/build.ts
COPY scripts/undici.mjs ./scripts/undici.mjs
COPY src ./src
COPY packages/sandbox/src ./packages/sandbox/src
COPY packages/sandbox/page ./packages/sandbox/page
COPY workbench/dist ./workbench/dist
COPY docs ./docs
RUN node scripts/build.ts

FROM node:26.10.0-alpine
WORKDIR /app
COPY --from=build /app/dist .
# The user `node`, by number: Kubernetes takes no name for one that is not root (runAsNonRoot).
USER 1000:1000
ENV NODE_ENV=production HOST=0.0.0.0 PORT=4000 DATA_DIR=/home/node/data NODE_COMPILE_CACHE=/home/node/compiled
# Compiled here, once: otherwise every start would do so, and could keep none of it on a root filesystem that is read-only.
RUN mkdir -p /home/node/data && node lib/pasarela.js --version && node --eval "for (const file of fs.readdirSync('lib/chunks')) if (/^(?!main|sandbox|pasarela).*js$/.test(file)) import('./lib/chunks/' + file)"
# Events that wait for Redis, and the embedded log: they must outlive the container.
VOLUME /home/node/data
EXPOSE 4000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/healthz`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# Node's own default is half of the container's memory, which the streams and documents that docs/sizing.md allows can fill.
ENTRYPOINT ["node", "--max-old-space-size-percentage=75", "lib/pasarela.js"]
CMD ["serve"]
