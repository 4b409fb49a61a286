import { readdir, readFile } from 'node:fs/promises';
import { Ajv } from 'ajv';
import { beforeAll, describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { readVariables } from '../../src/app/config.ts';
import { folder, installPackages } from '../helpers/packages.ts';

const CHART = 'charts/pasarela';

type Render = (template: string, data: unknown) => Promise<string>;
type Json = Readonly<Record<string, unknown>>;

interface Pod extends Json {
  readonly spec: Json & { readonly containers: readonly Json[] };
}

const read = (file: string) => readFile(folder(file), 'utf8');
const ownValues = async (): Promise<Json> => parse(await read(`${CHART}/values.yaml`));

const isGroup = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
/** The names of values, those of a group as `group.name`. What `config` and the annotations hold, users choose. */
const namesOf = (values: Json): readonly string[] =>
  Object.entries(values).flatMap(([name, value]) =>
    isGroup(value) && name !== 'config' ? Object.keys(value).map((inner) => `${name}.${inner}`) : [name],
  );

let render: Render;
beforeAll(async () => {
  await installPackages('test/packed');
  // Go's own template engine, which Helm's is: the chart calls none of the functions that Helm adds.
  const engine = await import(folder('test/packed/node_modules/@evertdespiegeleer/go-template/dist/main.js'));
  render = engine.parse;
});

/** What the chart makes, by kind and name, as `helm template NAME charts/pasarela` with some values of one's own would. */
async function rendered(name: string, own: Json = {}): Promise<ReadonlyMap<string, Json>> {
  const chart = parse(await read(`${CHART}/Chart.yaml`));
  const values = { ...(await ownValues()), ...own };
  const data = { Values: values, Release: { Name: name }, Chart: { AppVersion: chart.appVersion } };
  const files = await readdir(folder(`${CHART}/templates`));
  const texts = await Promise.all(
    files.map(async (file) => render(await read(`${CHART}/templates/${file}`), data)),
  );
  return byName(texts.join('\n---\n'));
}

function byName(text: string): ReadonlyMap<string, Json> {
  const documents = parseAllDocuments(text).map((document) => document.toJS());
  return new Map(
    documents
      .filter((made) => made !== null)
      .map((made) => [`${made.kind} ${made.metadata.name}`, made] as const),
  );
}

interface Env {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: { readonly secretKeyRef: { readonly key: string } };
}

/** The variables of a container in the order of Kubernetes: each source of `envFrom` counts before the one above it, and `env` before all. */
function environmentOf(
  container: Json,
  made: ReadonlyMap<string, Json>,
  secret: Readonly<Record<string, string>>,
): Readonly<Record<string, string | undefined>> {
  const sources = container['envFrom'] as readonly { readonly configMapRef?: { readonly name: string } }[];
  const { env = [] } = container as { readonly env?: readonly Env[] };
  return Object.assign(
    {},
    ...sources.map(({ configMapRef }) =>
      configMapRef === undefined ? secret : made.get(`ConfigMap ${configMapRef.name}`)?.['data'],
    ),
    ...env.map(({ name, value, valueFrom }) => ({
      [name]: valueFrom === undefined ? value : secret[valueFrom.secretKeyRef.key],
    })),
  );
}

describe('the Helm chart', () => {
  it('makes with its own values what the tested manifests are', async () => {
    const manifests = byName(await read('deploy/kubernetes/pasarela.yaml'));
    const made = await rendered('pasarela');
    // kubectl has no values whose change would exchange the pods.
    const set = made.get('StatefulSet pasarela') as { spec: { template: { metadata: Json } } };
    const { annotations, ...metadata } = set.spec.template.metadata as { annotations: Json };
    set.spec.template.metadata = metadata;
    expect(Object.keys(annotations)).toEqual(['pasarela/config']);
    expect(Object.fromEntries(made)).toEqual(Object.fromEntries(manifests));
  });

  it('exchanges the pods when a variable changes, and only then', async () => {
    const podsOf = async (config: Json) => {
      const set = (await rendered('pasarela', { config })).get('StatefulSet pasarela');
      return (set as { spec: { template: Json } }).spec.template;
    };
    const before = await podsOf({ LOG_LEVEL: 'info', UPSTREAM_URL: 'https://api.example.mx' });
    expect(await podsOf({ UPSTREAM_URL: 'https://api.example.mx', LOG_LEVEL: 'info' })).toEqual(before);
    expect(await podsOf({ UPSTREAM_URL: 'https://api.example.mx', LOG_LEVEL: 'warn' })).not.toEqual(before);
  });

  it('takes over each value', async () => {
    const made = await rendered('money', {
      image: { repository: 'registry.example.mx/pasarela', tag: '0.3.0' },
      replicas: 5,
      config: { UPSTREAM_URL: 'https://api.example.mx', LOG_LEVEL: 'say "warn"' },
      terminationGracePeriodSeconds: 90,
      secretName: 'money-secrets',
      filesSecretName: 'money-files',
      resources: { cpu: '2', memory: '1Gi', memoryLimit: '2Gi' },
      imagePullSecrets: ['registry'],
      storage: '5Gi',
      storageClass: 'fast',
      allowedNamespaces: ['edge'],
      ingress: { host: '', tlsSecretName: '' },
    });
    expect([...made.keys()].sort()).toEqual([
      'ConfigMap money',
      'NetworkPolicy money',
      'PodDisruptionBudget money',
      'Service money',
      'Service money-processes',
      'StatefulSet money',
    ]);
    expect(made.get('ConfigMap money')?.['data']).toEqual({
      UPSTREAM_URL: 'https://api.example.mx',
      LOG_LEVEL: 'say "warn"',
    });
    expect(made.get('StatefulSet money')).toMatchObject({
      spec: {
        serviceName: 'money-processes',
        replicas: 5,
        template: {
          spec: {
            terminationGracePeriodSeconds: 90,
            imagePullSecrets: [{ name: 'registry' }],
            containers: [
              {
                image: 'registry.example.mx/pasarela:0.3.0',
                envFrom: [{ configMapRef: { name: 'money' } }, { secretRef: { name: 'money-secrets' } }],
                resources: { requests: { cpu: 2, memory: '1Gi' }, limits: { memory: '2Gi' } },
                volumeMounts: [
                  { name: 'spool', mountPath: '/home/node/data' },
                  { name: 'files', mountPath: '/etc/pasarela', readOnly: true },
                ],
              },
            ],
            volumes: [{ name: 'files', secret: { secretName: 'money-files' } }],
          },
        },
        volumeClaimTemplates: [
          { spec: { resources: { requests: { storage: '5Gi' } }, storageClassName: 'fast' } },
        ],
      },
    });
    expect(made.get('NetworkPolicy money')).toMatchObject({
      spec: {
        ingress: [
          { from: [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'edge' } } }] },
        ],
      },
    });
  });

  it('starts several pods, and their doctor, only with a REDIS_URL, by which they share one record of payments', async () => {
    const needsOf = async (own: Json): Promise<readonly unknown[]> => {
      const made = await rendered('money', { secretName: 'secrets', doctor: true, ...own });
      return ['StatefulSet money', 'Job money-doctor'].map((name) => {
        const { spec } = (made.get(name) as { spec: { template: Pod } }).spec.template;
        return spec.containers[0]?.['env'];
      });
    };
    const valueFrom = { secretKeyRef: { name: 'secrets', key: 'REDIS_URL' } };
    const several = { name: 'NEEDS_REDIS', value: 'true' };
    const needed = [several, { name: 'REDIS_URL', valueFrom }];
    expect(await needsOf({ replicas: 2 })).toEqual([needed, needed]);
    expect(await needsOf({ replicas: 1 })).toEqual([undefined, undefined]);
    const config = { REDIS_URL: 'redis://redis.example.mx:6379' };
    expect(await needsOf({ replicas: 2, config })).toEqual([[several], [several]]);
  });

  // Such a value is left where a line was taken out of `stringData`: kubernetes/kubernetes#89938.
  it.each([
    ['without one in config', {}],
    ['beside the one in config', { REDIS_URL: 'redis://redis.example.mx:6379' }],
  ])(
    'starts no several pods, nor their doctor, with an empty REDIS_URL in the Secret %s',
    async (_how, config) => {
      const made = await rendered('money', { replicas: 2, config, doctor: true });
      const secret: Readonly<Record<string, string>> = { REDIS_URL: '' };
      for (const name of ['StatefulSet money', 'Job money-doctor']) {
        const { spec } = (made.get(name) as { spec: { template: Pod } }).spec.template;
        expect(() => readVariables(environmentOf(spec.containers[0] ?? {}, made, secret)), name).toThrow(
          'REDIS_URL: is not set, or empty',
        );
      }
    },
  );

  it('makes on demand a doctor that has of the pods all that it tries, and nothing that they have', async () => {
    const own = { image: { repository: 'registry.example.mx/pasarela', tag: 'build-42' } };
    const values = {
      ...own,
      imagePullSecrets: ['registry'],
      secretName: 'secrets',
      filesSecretName: 'files',
    };
    const made = await rendered('money', values);
    const asked = await rendered('money', { ...values, doctor: true });
    const added = [...asked.keys()].filter((name) => !made.has(name));
    expect(added).toEqual(['ConfigMap money-doctor', 'Job money-doctor']);
    expect(asked.get('ConfigMap money-doctor')?.['data']).toEqual(made.get('ConfigMap money')?.['data']);
    const podOf = (name: string) => (asked.get(name) as { spec: { template: Pod } }).spec.template;
    const [pods, job] = [podOf('StatefulSet money'), podOf('Job money-doctor')];
    const { imagePullSecrets, securityContext } = pods.spec;
    expect(job.spec).toMatchObject({ imagePullSecrets, securityContext });
    expect(job.spec['volumes']).toEqual(expect.arrayContaining(pods.spec['volumes'] as Json[]));
    const [[gateway], [doctor]] = [pods.spec.containers, job.spec.containers];
    expect(doctor).toMatchObject({
      image: gateway?.['image'],
      securityContext: gateway?.['securityContext'],
    });
    const envFrom = [{ configMapRef: { name: 'money-doctor' } }, { secretRef: { name: 'secrets' } }];
    expect(doctor).toMatchObject({ args: ['doctor'], envFrom });
    const paths = (container: Json = {}) =>
      (container['volumeMounts'] as Json[]).map(({ mountPath }) => mountPath);
    expect(paths(doctor)).toEqual(paths(gateway));
    // The Service selects by label.
    expect(job['metadata']).toBeUndefined();
  });

  it('makes with its own values the doctor of the tested manifests, but for its ConfigMap', async () => {
    const text = await read('deploy/kubernetes/doctor.yaml');
    const [job] = byName(text.replace(/configMapRef:\s+name: pasarela/, '$&-doctor')).values();
    expect((await rendered('pasarela', { doctor: true })).get('Job pasarela-doctor')).toEqual(job);
  });

  it('takes the values that docs/kubernetes.md shows', async () => {
    const [, text = ''] = /```yaml\n([\s\S]*?)```/.exec(await read('docs/kubernetes.md')) ?? [];
    const own = parse(text);
    const validate = new Ajv({ strict: false }).compile(
      JSON.parse(await read(`${CHART}/values.schema.json`)),
    );
    expect(validate(own), JSON.stringify(validate.errors)).toBe(true);
    const config = { ...((await ownValues())['config'] as Json), ...own.config };
    const made = await rendered('pasarela', { ...own, config, doctor: true });
    expect(made.get('Ingress pasarela')).toMatchObject({
      metadata: { annotations: own.ingress.annotations },
    });
    const files = { name: 'files', secret: { secretName: own.filesSecretName } };
    for (const name of ['StatefulSet pasarela', 'Job pasarela-doctor'])
      expect((made.get(name) as { spec: { template: Pod } }).spec.template.spec['volumes']).toContainEqual(
        files,
      );
  });

  it('gives the Ingress a class and annotations', async () => {
    const annotations = { 'example.mx/timeout': '60s', 'example.mx/quoted': 'a "b"' };
    const ingress = { host: 'graph.example.mx', tlsSecretName: 'tls', className: 'edge', annotations };
    expect((await rendered('money', { ingress })).get('Ingress money')).toMatchObject({
      metadata: { annotations },
      spec: { ingressClassName: 'edge', rules: [{ host: 'graph.example.mx' }] },
    });
  });

  it('has no value that nothing reads', async () => {
    const templates = await Promise.all(
      (await readdir(folder(`${CHART}/templates`))).map((file) => read(`${CHART}/templates/${file}`)),
    );
    for (const name of namesOf(await ownValues())) expect(templates.join('\n')).toContain(`.Values.${name}`);
  });
});

/** Helm holds values to it before it makes anything. */
describe('the schema of the values', () => {
  const schemaOfValues = async () => JSON.parse(await read(`${CHART}/values.schema.json`));

  it('names each value that there is, and no other', async () => {
    const { properties } = await schemaOfValues();
    const names = Object.entries<Json>(properties).flatMap(([name, { properties: inner }]) =>
      isGroup(inner) ? Object.keys(inner).map((one) => `${name}.${one}`) : [name],
    );
    // Helm gives it to a chart within another one.
    expect(names.filter((name) => name !== 'global').sort()).toEqual([...namesOf(await ownValues())].sort());
  });

  it.each<[string, Json]>([
    ['a misspelt value', { replica: 3 }],
    ['a misspelt value of a group', { ingress: { hosts: ['graph.example.mx'] } }],
    ['a variable in small letters', { config: { log_level: 'warn' } }],
    ['a number where the ConfigMap wants a text', { config: { SHUTDOWN_DELAY_MS: 10_000 } }],
    ['no namespace, by which all would be let in', { allowedNamespaces: [] }],
    ['half a replica', { replicas: 1.5 }],
    ['no Secret', { secretName: '' }],
  ])('refuses %s', async (_what, own) => {
    const validate = new Ajv({ strict: false }).compile(await schemaOfValues());
    expect(validate(await ownValues()), JSON.stringify(validate.errors)).toBe(true);
    expect(validate({ ...(await ownValues()), ...own })).toBe(false);
  });
});
