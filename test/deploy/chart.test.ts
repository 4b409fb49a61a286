import { readdir, readFile } from 'node:fs/promises';
import { beforeAll, describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { folder, installPackages } from '../helpers/packages.ts';

const CHART = 'charts/pasarela';

type Render = (template: string, data: unknown) => Promise<string>;
type Json = Readonly<Record<string, unknown>>;

const read = (file: string) => readFile(folder(file), 'utf8');

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
  const values = { ...parse(await read(`${CHART}/values.yaml`)), ...own };
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

describe('the Helm chart', () => {
  it('makes with its own values what the tested manifests are', async () => {
    const manifests = byName(await read('deploy/kubernetes/pasarela.yaml'));
    expect(Object.fromEntries(await rendered('pasarela'))).toEqual(Object.fromEntries(manifests));
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
      storage: '5Gi',
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
        volumeClaimTemplates: [{ spec: { resources: { requests: { storage: '5Gi' } } } }],
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

  it('has no value that nothing reads', async () => {
    const templates = await Promise.all(
      (await readdir(folder(`${CHART}/templates`))).map((file) => read(`${CHART}/templates/${file}`)),
    );
    const values: Json = parse(await read(`${CHART}/values.yaml`));
    const isGroup = (value: unknown): value is Json =>
      typeof value === 'object' && value !== null && !Array.isArray(value);
    const names = Object.entries(values).flatMap(([name, value]) =>
      isGroup(value) && name !== 'config' ? Object.keys(value).map((inner) => `${name}.${inner}`) : [name],
    );
    for (const name of names) expect(templates.join('\n')).toContain(`.Values.${name}`);
  });
});
