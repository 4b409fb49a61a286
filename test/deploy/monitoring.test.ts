import { readFile } from 'node:fs/promises';
import { parser } from '@prometheus-io/lezer-promql';
import { describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { createMetrics } from '../../src/observability/metrics.ts';
import { undocumentedValues } from '../../src/resolvers/open-enum.ts';
import { recordingLogger } from '../helpers/events.ts';
import { WORLDS } from './alerts/worlds.ts';

const read = (file: string) => readFile(new URL(`../../${file}`, import.meta.url), 'utf8');

/** Series that a scrape of the gateway yields, and what Prometheus adds of its own. */
async function series(): Promise<ReadonlySet<string>> {
  const metrics = await createMetrics(undocumentedValues, recordingLogger()).registry.getMetricsAsJSON();
  const names = metrics.flatMap(({ name, type }) =>
    String(type) === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
  );
  return new Set([...names, 'up']);
}

/** An expression without the variables that Grafana fills in. */
const plain = (expression: string): string =>
  expression.replaceAll('$__rate_interval', '5m').replaceAll('$job', 'x').replaceAll('$instance', 'x');

/** The metrics that an expression of PromQL names. Throws for one that is no PromQL. */
function metricsOf(expression: string): readonly string[] {
  const text = plain(expression);
  const names: string[] = [];
  parser.parse(text).iterate({
    enter({ type, from, to }) {
      if (type.isError) throw new Error(`no PromQL at ${from}: ${text}`);
      if (type.name === 'Identifier') names.push(text.slice(from, to));
    },
  });
  return names;
}

type SyntaxNode = ReturnType<typeof parser.parse>['topNode'];

interface Selector {
  readonly metric: string;
  /** The values that labels are asked for, each a pattern. */
  readonly wanted: readonly { readonly label: string; readonly values: readonly string[] }[];
}

/**
 * What an expression counts the growth of, by these functions. Not of quantiles: they are about many, of which the first is one.
 */
function increasesOf(expression: string, functions: readonly string[]): readonly Selector[] {
  const text = plain(expression);
  const found: Selector[] = [];
  const read = (node: SyntaxNode, isCounted: boolean): void => {
    const name = node.name === 'FunctionCall' ? text.slice(node.from, node.to).split('(', 1)[0] : undefined;
    if (name === 'histogram_quantile') return;
    if (node.name === 'VectorSelector' && isCounted) found.push(selectorOf(node, text));
    const isInside = isCounted || (name !== undefined && functions.includes(name));
    for (let child = node.firstChild; child !== null; child = child.nextSibling) read(child, isInside);
  };
  read(parser.parse(text).topNode, false);
  return found;
}

function selectorOf(node: SyntaxNode, text: string): Selector {
  const shown = (part: SyntaxNode | null) => (part === null ? '' : text.slice(part.from, part.to));
  const matchers = node.getChild('LabelMatchers')?.getChildren('UnquotedLabelMatcher') ?? [];
  const wanted = matchers
    .filter((matcher) => ['=', '=~'].includes(shown(matcher.getChild('MatchOp'))))
    .map((matcher) => ({
      label: shown(matcher.getChild('LabelName')),
      values: JSON.parse(shown(matcher.getChild('StringLiteral'))).split('|') as string[],
    }))
    // Prometheus adds these.
    .filter(({ label }) => label !== 'job' && label !== 'instance');
  return { metric: shown(node.getChild('Identifier')), wanted };
}

/** What a selector asks for and a process that has just begun does not show as 0. */
function missing({ metric, wanted }: Selector, fresh: readonly Sample[]): readonly string[] {
  const has = ({ labels }: Sample, label: string, value: string) =>
    new RegExp(`^(${value})$`).test(String(labels[label]));
  const own = fresh.filter(
    (one) =>
      one.name === metric &&
      one.value === 0 &&
      wanted.every(({ label, values }) => has(one, label, values.join('|'))),
  );
  if (own.length === 0) return [metric];
  return wanted.flatMap(({ label, values }) =>
    values.filter((value) => !own.some((one) => has(one, label, value))).map((value) => `${label}=${value}`),
  );
}

interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, unknown>>;
  readonly value: number;
}

/** Every sample of a process that has just begun. */
async function samples(): Promise<readonly Sample[]> {
  const metrics = await createMetrics(undocumentedValues, recordingLogger()).registry.getMetricsAsJSON();
  return metrics.flatMap(({ name, values }) =>
    values.map((one) => ({
      name: 'metricName' in one && typeof one.metricName === 'string' ? one.metricName : name,
      labels: one.labels,
      value: one.value,
    })),
  );
}

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly runbook_url: string };
}

const rules = async (): Promise<readonly Rule[]> =>
  parse(await read('deploy/prometheus/alerts.yaml')).groups[0].rules;

interface Panel {
  readonly id: number;
  readonly title: string;
  readonly type: string;
  readonly targets?: readonly { readonly refId: string; readonly expr: string }[];
}

const panels = async (): Promise<readonly Panel[]> =>
  JSON.parse(await read('deploy/grafana/pasarela.json')).panels;

it('an expression that is no PromQL is noticed', () => {
  expect(() => metricsOf('sum(rate(pasarela_events_gaps_total[5m])')).toThrow('no PromQL');
});

describe('the alerting rules', () => {
  it('name only metrics that the gateway has', async () => {
    const known = await series();
    for (const { alert, expr } of await rules()) {
      const names = metricsOf(expr);
      expect(names, alert).not.toEqual([]);
      for (const name of names) expect(known, alert).toContain(name);
    }
  });

  // promtool runs the cases: npm run check:alerts.
  it('are each caused by a case of alerts.test.yaml', async () => {
    const { tests } = parse(await read('deploy/prometheus/alerts.test.yaml'));
    const caused = tests.flatMap(
      ({ alert_rule_test }: { alert_rule_test: { alertname: string; exp_alerts: [] }[] }) => {
        const firing = alert_rule_test.filter(({ exp_alerts }) => exp_alerts.length > 0);
        return firing.map(({ alertname }) => alertname);
      },
    );
    expect([...new Set(caused)].sort()).toEqual((await rules()).map(({ alert }) => alert).sort());
  });

  // test/deploy/alerts/alerts.test.ts causes them on a running gateway.
  it('are each caused by a real fault', async () => {
    const caused = new Set(WORLDS.flatMap(({ faults }) => faults.flatMap(({ alerts }) => alerts)));
    expect([...caused].sort()).toEqual((await rules()).map(({ alert }) => alert).sort());
  });

  it('have a severity, a summary, and the address of a place in docs/alerts.md that says what to do', async () => {
    const page = await read('docs/alerts.md');
    const { repository } = JSON.parse(await read('package.json'));
    const published = `${repository.url.replace(/^git\+|\.git$/g, '')}/blob/main/docs/alerts.md`;
    for (const { alert, labels, annotations } of await rules()) {
      expect(['critical', 'warning']).toContain(labels.severity);
      expect(annotations.summary).toMatch(/\.$/);
      expect(page).toContain(`## ${alert}\n`);
      expect(annotations.runbook_url).toBe(`${published}#${alert.toLowerCase()}`);
    }
    const described = [...page.matchAll(/^## (Pasarela\w+)$/gm)].map(([, name]) => name);
    expect(described.sort()).toEqual((await rules()).map(({ alert }) => alert).sort());
  });

  it('can fire at the first time that something happens: what they count begins at 0', async () => {
    const fresh = await samples();
    const counted = (await rules()).flatMap(({ alert, expr }) =>
      increasesOf(expr, ['increase', 'rate']).map((selector) => ({ alert, ...selector })),
    );
    expect(counted.length).toBeGreaterThan(20);
    for (const { alert, ...selector } of counted) expect(missing(selector, fresh), alert).toEqual([]);
  });

  it('are told of an unlikely status of a webhook, and of a conflict, from the first one on', async () => {
    const text = await createMetrics(undocumentedValues, recordingLogger()).registry.metrics();
    expect(text).toContain('pasarela_events_duplicates_total{type="MONEY_IN",conflict="true"} 0');
    for (const status of [201, 400, 401, 405, 408, 413, 422, 500, 503]) {
      const answers = `pasarela_http_request_duration_seconds_count{path="/webhooks/",status="${status}"} 0`;
      expect(text).toContain(answers);
    }
  });
});

it('Prometheus finds the pods of the manifests, under the name that the rules go by', async () => {
  const configuration = parse(await read('deploy/prometheus/prometheus.yaml'));
  const { global, rule_files: files, scrape_configs: jobs } = configuration;
  expect(files).toEqual(['alerts.yaml']);
  const [{ job_name: job, relabel_configs: relabelling }] = jobs;
  const [label, port] = relabelling[0].regex.split(';');
  const manifests = parseAllDocuments(await read('deploy/kubernetes/pasarela.yaml')).map((one) => one.toJS());
  const { metadata, spec } = manifests.find(({ kind }) => kind === 'StatefulSet').spec.template;
  expect(metadata.labels['app.kubernetes.io/name']).toBe(label);
  expect(spec.containers[0].ports.map(({ name }: { name: string }) => name)).toContain(port);
  const named = (await rules()).flatMap(({ expr }) =>
    [...expr.matchAll(/job="(\w+)"/g)].map(([, name]) => name),
  );
  expect(new Set(named)).toEqual(new Set([job]));
  // Several evaluations within the shortest `for`.
  const UNITS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600 };
  const seconds = (time: string) => Number.parseInt(time, 10) * (UNITS[time.slice(-1)] ?? Number.NaN);
  const waits = (await rules()).flatMap((rule) => (rule.for === undefined ? [] : [seconds(rule.for)]));
  expect(seconds(global.evaluation_interval)).toBeLessThanOrEqual(Math.min(...waits) / 4);
  expect(seconds(global.scrape_interval)).toBeLessThanOrEqual(Math.min(...waits) / 4);
});

describe('the Grafana dashboard', () => {
  it('has no two panels of one id, by which Grafana opens them, and no two queries of one in a panel', async () => {
    const shown = await panels();
    const ids = shown.map(({ id }) => id);
    expect([...new Set(ids)]).toEqual(ids);
    for (const { title, targets = [] } of shown) {
      const queries = targets.map(({ refId }) => refId);
      expect([...new Set(queries)], title).toEqual(queries);
    }
  });

  it('names only metrics that the gateway has', async () => {
    const known = await series();
    const shown = (await panels()).filter(({ type }) => type !== 'row');
    expect(shown.length).toBeGreaterThan(10);
    for (const { title, targets = [] } of shown) {
      expect(targets, title).not.toEqual([]);
      for (const { expr } of targets) {
        for (const name of metricsOf(expr)) expect(known, title).toContain(name);
      }
    }
  });

  it('counts what happens for the first time in its numbers and sums', async () => {
    const fresh = await samples();
    const counted = (await panels()).flatMap(({ title, targets = [] }) =>
      targets.flatMap(({ expr }) =>
        increasesOf(expr, ['increase']).map((selector) => ({ title, ...selector })),
      ),
    );
    expect(counted.length).toBeGreaterThan(5);
    for (const { title, ...selector } of counted) expect(missing(selector, fresh), title).toEqual([]);
  });

  it('shows every metric of the gateway’s own', async () => {
    const shown = (await panels()).flatMap(({ targets = [] }) =>
      targets.flatMap(({ expr }) => metricsOf(expr)),
    );
    const metrics = await createMetrics(undocumentedValues, recordingLogger()).registry.getMetricsAsJSON();
    for (const { name } of metrics.filter((metric) => metric.name.startsWith('pasarela_'))) {
      expect(
        shown.some((used) => used === name || used.startsWith(`${name}_`)),
        name,
      ).toBe(true);
    }
  });
});

it('docs/monitoring.md explains every metric of the gateway’s own, and no other', async () => {
  const page = await read('docs/monitoring.md');
  const metrics = await createMetrics(undocumentedValues, recordingLogger()).registry.getMetricsAsJSON();
  const own = metrics.map(({ name }) => name).filter((name) => name.startsWith('pasarela_'));
  const explained = [...page.matchAll(/^\| `(pasarela_\w+)` \|/gm)].map(([, name]) => name);
  expect(explained.sort()).toEqual(own.sort());
});

it('docs/alerts.md says of each part of pasarela_degraded which alerts tell of it', async () => {
  const text = await createMetrics(undocumentedValues, recordingLogger()).registry.metrics();
  const parts = [...text.matchAll(/^pasarela_degraded\{part="(\w+)"\}/gm)].map(([, part]) => part);
  const [, section = ''] = /\n## `degraded`\n(.*?)\n## /s.exec(await read('docs/alerts.md')) ?? [];
  const rows = [...section.matchAll(/^\| `(\w+)` \|.*\[(Pasarela\w+)\]/gm)];
  expect(rows.map(([, part]) => part).sort()).toEqual(parts.sort());
  const names = (await rules()).map(({ alert }) => alert);
  for (const [, alert] of section.matchAll(/\[(Pasarela\w+)\]/g)) expect(names).toContain(alert);
});
