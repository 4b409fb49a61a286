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

/** The metrics that an expression of PromQL names. Throws for one that is no PromQL. */
function metricsOf(expression: string): readonly string[] {
  // Variables that Grafana fills in.
  const text = expression
    .replaceAll('$__rate_interval', '5m')
    .replaceAll('$job', 'x')
    .replaceAll('$instance', 'x');
  const names: string[] = [];
  parser.parse(text).iterate({
    enter({ type, from, to }) {
      if (type.isError) throw new Error(`no PromQL at ${from}: ${text}`);
      if (type.name === 'Identifier') names.push(text.slice(from, to));
    },
  });
  return names;
}

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string };
}

const rules = async (): Promise<readonly Rule[]> =>
  parse(await read('deploy/prometheus/alerts.yaml')).groups[0].rules;

interface Panel {
  readonly title: string;
  readonly type: string;
  readonly targets?: readonly { readonly expr: string }[];
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

  it('have a severity, a summary, and a place in docs/alerts.md that says what to do', async () => {
    const page = await read('docs/alerts.md');
    for (const { alert, labels, annotations } of await rules()) {
      expect(['critical', 'warning']).toContain(labels.severity);
      expect(annotations.summary).toMatch(/\.$/);
      expect(page).toContain(`## ${alert}\n`);
    }
    const described = [...page.matchAll(/^## (Pasarela\w+)$/gm)].map(([, name]) => name);
    expect(described.sort()).toEqual((await rules()).map(({ alert }) => alert).sort());
  });

  it('can fire at the first time that something happens', async () => {
    const text = await createMetrics(undocumentedValues, recordingLogger()).registry.metrics();
    expect(text).toContain('pasarela_events_duplicates_total{type="MONEY_IN",conflict="true"} 0');
    expect(text).toContain('pasarela_events_quarantined_total{reason="undecided"} 0');
    expect(text).toContain('pasarela_events_spooled_total{type="MONEY_IN"} 0');
    for (const status of [201, 400, 401, 405, 408, 413, 422, 500, 503]) {
      const answers = `pasarela_http_request_duration_seconds_count{path="/webhooks/",status="${status}"} 0`;
      expect(text).toContain(answers);
    }
  });
});

it('Prometheus finds the pods of the manifests, under the name that the rules go by', async () => {
  const { rule_files: files, scrape_configs: jobs } = parse(await read('deploy/prometheus/prometheus.yaml'));
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
});

describe('the Grafana dashboard', () => {
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
