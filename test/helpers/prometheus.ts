import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse, stringify } from 'yaml';
import { listens, startProxy } from './proxies.ts';
import { freePort } from './restartable.ts';
import { until } from './until.ts';

const RULES = fileURLToPath(new URL('../../deploy/prometheus/alerts.yaml', import.meta.url));

interface Rules {
  groups: { rules: { alert: string; expr: string; for?: string }[] }[];
}

/** A Prometheus with the project's rules, which scrapes and evaluates each second. */
export interface Prometheus {
  /** The names of the alerts that fire; none where Prometheus does not answer. */
  firing(): Promise<readonly string[]>;
  /** The value of an expression that yields one; undefined where it yields none. */
  value(expression: string): Promise<number | undefined>;
  /** Scrapes these gateways from now on, and no other. */
  scrape(urls: readonly string[]): Promise<void>;
  stop(): void;
}

/**
 * @param folder where it keeps its files
 * @param wait what stands in the place of a rule's `for` and of its `offset`, such as `1s`; the rules are the project's in
 *   all else
 */
export async function startPrometheus(
  folder: string,
  urls: readonly string[],
  wait: (time: string) => string,
  lifetimeSeconds: number,
): Promise<Prometheus> {
  // The file is the project's own; Prometheus reads what is wrong with it.
  const rules = parse(await readFile(RULES, 'utf8')) as Rules;
  for (const { rules: list } of rules.groups)
    for (const rule of list) {
      if (rule.for !== undefined) rule.for = wait(rule.for);
      rule.expr = rule.expr.replace(/(?<=\boffset )\w+/g, wait);
    }
  await writeFile(join(folder, 'alerts.yaml'), stringify(rules));
  const file = join(folder, 'prometheus.yaml');
  await writeFile(file, configuration(folder, urls));
  const port = await freePort();
  const prometheus = startProxy(
    'prometheus',
    [
      `--config.file=${file}`,
      `--storage.tsdb.path=${join(folder, 'prometheus')}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    lifetimeSeconds,
  );
  await until(() => {
    if (prometheus.exitCode !== null) throw new Error(`prometheus ended with ${prometheus.exitCode}.`);
    return listens(port);
  });
  const api = `http://127.0.0.1:${port}/api/v1`;
  return {
    firing: () => firing(api),
    value: (expression) => value(api, expression),
    async scrape(others) {
      await writeFile(file, configuration(folder, others));
      prometheus.kill('SIGHUP');
    },
    stop: () => void prometheus.kill(),
  };
}

const configuration = (folder: string, urls: readonly string[]): string =>
  stringify({
    global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
    rule_files: [join(folder, 'alerts.yaml')],
    scrape_configs: [
      { job_name: 'pasarela', static_configs: [{ targets: urls.map((url) => new URL(url).host) }] },
    ],
  });

async function firing(api: string): Promise<readonly string[]> {
  try {
    const response = await fetch(`${api}/alerts`);
    // Prometheus, HTTP API, "Alerts".
    const { data } = (await response.json()) as {
      data: { alerts: { state: string; labels: { alertname: string } }[] };
    };
    return data.alerts.filter(({ state }) => state === 'firing').map(({ labels }) => labels.alertname);
  } catch {
    // It has not begun to serve.
    return [];
  }
}

async function value(api: string, expression: string): Promise<number | undefined> {
  const response = await fetch(`${api}/query?${new URLSearchParams({ query: expression })}`);
  if (!response.ok) return undefined;
  // Prometheus, HTTP API, "Instant vectors".
  const { data } = (await response.json()) as { data: { result: { value: [number, string] }[] } };
  const [first] = data.result;
  return first === undefined ? undefined : Number(first.value[1]);
}
