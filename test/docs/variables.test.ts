import { beforeAll, expect, it } from 'vitest';
import { VARIABLE_NAMES, wants } from '../../src/app/variables.ts';
import { readPage } from './pages.ts';

/** Variables that OpenTelemetry's SDK reads. */
const FOREIGN = ['OTEL_SERVICE_NAME', 'OTEL_RESOURCE_ATTRIBUTES', 'OTEL_EXPORTER_OTLP_HEADERS'];
/** Others of OpenTelemetry, of which docs/monitoring.md says that they change nothing. */
const UNREAD = [
  ...['OTEL_SDK_DISABLED', 'OTEL_TRACES_EXPORTER', 'OTEL_TRACES_SAMPLER'],
  ...['OTEL_EXPORTER_OTLP_PROTOCOL', 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'],
];

/** Those that may differ between the processes of one gateway, by the reason. */
const MAY_DIFFER: Readonly<Record<string, readonly (typeof VARIABLE_NAMES)[number][]>> = {
  'A time, or how often something is done.': [
    ...(['UPSTREAM_TIMEOUT_MS', 'OPERATION_TIMEOUT_MS', 'LISTS_MAX_AGE', 'RECONCILE_EVERY'] as const),
    ...(['AUTH_JWKS_MAX_AGE', 'AUTH_JWKS_COOLDOWN_MS', 'KEEP_ALIVE_TIMEOUT_MS'] as const),
    ...(['SOCKET_LIFETIME', 'SHUTDOWN_DELAY_MS', 'SHUTDOWN_GRACE_MS'] as const),
  ],
  'A limit.': [
    ...VARIABLE_NAMES.filter((name) => name.startsWith('LIMIT_')),
    ...(['UPSTREAM_ANSWER_BYTES', 'UPSTREAM_CALLS_PER_CALLER'] as const),
    ...(['OPERATIONS_QUEUE', 'UPSTREAM_POLLS_PER_SECOND'] as const),
  ],
  'It belongs to the machine or the network of the process.': [
    ...(['HOST', 'PORT', 'REUSE_PORT', 'TRUSTED_PROXIES', 'DATA_DIR'] as const),
    ...(['REDIS_TLS_CA', 'REDIS_TLS_CERT', 'REDIS_TLS_KEY'] as const),
  ],
  'It holds what one process sends, and the page says so.': ['PAYMENTS'],
  'It may stop the start of its process, and changes nothing else.': ['NEEDS_REDIS'],
  'It helps to find a fault.': [
    ...(['LOG_LEVEL', 'LAYERS_OFF', 'UPSTREAM_REPORT', 'OTEL_EXPORTER_OTLP_ENDPOINT'] as const),
  ],
  'A command reads it, or the sandbox, and no gateway before the REST service.': [
    'FORWARD_SECRET',
    ...VARIABLE_NAMES.filter((name) => /^(PASARELA|SANDBOX)_/.test(name)),
  ],
};

interface Variable {
  readonly name: string;
  /** As the page should write it; undefined for one without a plain default. */
  readonly byDefault: string | undefined;
}

let variables: readonly Variable[];
let rows: readonly { readonly names: readonly string[]; readonly byDefault: string }[];

beforeAll(async () => {
  const [, schema = ''] =
    /const variables = \{(.*?)^\};/ms.exec(await readPage('src/app/variables.ts')) ?? [];
  variables = schema.split(/^ {2}(?=[A-Z_]+:)/m).flatMap((text) => {
    const [, name] = /^([A-Z_]+):/.exec(text) ?? [];
    const [, plain] = /,\s+'?([\w.:-]+)'?,?\s*\),\s*(?:\/\/.*\s*)*$/.exec(text) ?? [];
    const byDefault = plain !== undefined && /^\d[\d_]*$/.test(plain) ? plain.replaceAll('_', '') : plain;
    return name === undefined ? [] : [{ name, byDefault }];
  });
  const page = await readPage('docs/configuration.md');
  rows = [...page.matchAll(/^\|([^|]+)\|[^|]+\|([^|]+)\|$/gm)].map(([, first = '', last = '']) => ({
    names: [...first.matchAll(/`([A-Z_]+)`/g)].map(([, name = '']) => name),
    byDefault: last,
  }));
});

it('docs/configuration.md explains every variable once, and no other', () => {
  const explained = rows.flatMap(({ names }) => names);
  expect(explained.length).toBeGreaterThan(45);
  expect(explained.sort()).toEqual([...variables.map(({ name }) => name), ...FOREIGN].sort());
});

it('docs/configuration.md says which whole numbers a variable takes', () => {
  const numbers = VARIABLE_NAMES.flatMap((name) => {
    const [, range] = /^a whole number from (\d+ to \d+)$/.exec(wants(name)) ?? [];
    return range === undefined ? [] : [{ name, range }];
  });
  expect(numbers.length).toBeGreaterThan(25);
  for (const { name, range } of numbers) {
    const row = rows.find(({ names }) => names.includes(name));
    expect(row?.byDefault.trim().endsWith(`; ${range}`), `${name}: ${range}`).toBe(true);
  }
});

it('docs/configuration.md names the defaults that the variables have', () => {
  const plain = variables.filter(({ byDefault }) => byDefault !== undefined);
  expect(plain.length).toBeGreaterThan(20);
  for (const { name, byDefault } of plain) {
    const row = rows.find(({ names }) => names.includes(name));
    expect(row?.byDefault, name).toContain(`\`${byDefault}\``);
  }
});

it('docs/kubernetes.md says of every variable where it differs between processes, but for those that may', async () => {
  const [, section = ''] =
    /^## What all pods share\n(.*?)^## /ms.exec(await readPage('docs/kubernetes.md')) ?? [];
  const equal = [...section.matchAll(/^\|([^|]+)\|/gm)].flatMap(([, first = '']) =>
    [...first.matchAll(/`([A-Z_]+)`/g)].map(([, name = '']) => name),
  );
  expect([...equal, ...Object.values(MAY_DIFFER).flat()].toSorted()).toEqual(VARIABLE_NAMES.toSorted());
});

it.each([
  'docs/operations.md',
  'docs/kubernetes.md',
  'docs/proxies.md',
  'docs/sizing.md',
  'docs/secrets.md',
  'docs/redis.md',
  'docs/monitoring.md',
  'docs/alerts.md',
  'README.md',
  'CONTRIBUTING.md',
  'ARCHITECTURE.md',
  'SECURITY.md',
])('%s names no variable that the gateway does not read', async (name) => {
  const known = variables.map((variable) => variable.name);
  const page = await readPage(name);
  const prefix =
    /^(UPSTREAM|AUTH|REDIS|DATA|EVENTS|PUBLIC|WEBHOOK|LOG|SANDBOX|OTEL|PASARELA|TRUSTED|LIMIT|REUSE|NEEDS)_/;
  const codes = [
    'EVENTS_GAP',
    'UPSTREAM_UNAVAILABLE',
    'UPSTREAM_RATE_LIMITED',
    'UPSTREAM_INVALID',
    'UPSTREAM_TIMEOUT',
  ];
  for (const [, variable = ''] of page.matchAll(/`([A-Z]+(?:_[A-Z]+)+)`/g)) {
    if (prefix.test(variable) && ![...FOREIGN, ...UNREAD, ...codes].includes(variable))
      expect(known).toContain(variable);
  }
});
