import { readEnvironment } from '../../app/config.ts';
import { type Command, EXIT, outliveReader, print, readArguments, UsageError } from '../command.ts';
import { tokenOf } from '../token.ts';
import { CASES, type Case, TRANSPORTS, type Transport } from './case.ts';
import { play, type Verdict } from './play.ts';

/** `pasarela conformance`: checks a running gateway against the rules of PROTOCOL.md. */
export const conformance: Command = {
  help: `Usage: pasarela conformance <url> [--transport sse | websocket] [--case <text>] [--slow] [--json]

Holds the gateway at an address to the rules of PROTOCOL.md, as a client sees them, and says of each case whether they are kept. It reads
and follows as the caller whose token the environment holds; it changes nothing, and sends no mutation. A case that needs events which the
log does not hold is skipped, with the reason.

  PASARELA_TOKEN=… pasarela conformance https://pay.example.mx/graphql

  --transport   server-sent events or the WebSocket alone
  --case        only the cases with this text in their name
  --slow        waits up to a minute for what comes by the clock, too: keep-alive and bookmarks
  --json        [{ "name", "transport", "rules", "is": "kept" | "broken" | "untried", "why"? }]

Exit codes: 0 no rule is broken; 1 at least one is; 2 the command line is not understood.`,
  async run(args) {
    const { values, positionals } = readArguments(args, {
      transport: { type: 'string' },
      case: { type: 'string', default: '' },
      slow: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
    });
    const [url, ...more] = positionals;
    if (url === undefined || more.length > 0) throw new UsageError('wants the address of one graph');
    if (!/^https?:\/\//.test(url) || !URL.canParse(url))
      throw new UsageError(
        `got "${url}", wants the address of a graph, such as http://127.0.0.1:4000/graphql`,
      );
    const transports = TRANSPORTS.filter((one) => (values.transport ?? one) === one);
    if (transports.length === 0)
      throw new UsageError(`--transport got "${values.transport}", wants sse or websocket`);
    const trials = transports.flatMap((transport) =>
      CASES.filter(
        (one) =>
          one.transports.includes(transport) && one.name.includes(values.case) && (values.slow || !one.slow),
      ).map((one) => ({ one, transport })),
    );
    if (trials.length === 0) throw new UsageError(`no case has "${values.case}" in its name`);
    outliveReader();
    return report(trials, url, await tokenOf(readEnvironment()).get(), values.json);
  },
};

interface Trial {
  readonly one: Case;
  readonly transport: Transport;
}

/**
 * Tries one case after another, so that a gateway with few seats for this caller passes too. Slow cases run at the same time.
 */
async function report(trials: readonly Trial[], url: string, token: string, isJson: boolean) {
  const slow = new Map(
    trials
      .filter(({ one }) => one.slow)
      .map((trial) => [trial, play(trial.one, trial.transport, url, token)]),
  );
  const found: (Trial & { readonly verdict: Verdict })[] = [];
  for (const trial of trials) {
    const verdict = await (slow.get(trial) ?? play(trial.one, trial.transport, url, token));
    found.push({ ...trial, verdict });
    if (!isJson) print(lineOf(found.length, trial, verdict));
  }
  if (isJson)
    print(
      JSON.stringify(
        found.map(({ one, transport, verdict }) => ({
          name: one.name,
          transport,
          rules: one.rules,
          ...verdict,
        })),
        undefined,
        2,
      ),
    );
  const count = (is: Verdict['is']): number => found.filter(({ verdict }) => verdict.is === is).length;
  if (!isJson) print(`\n${count('kept')} kept, ${count('broken')} broken, ${count('untried')} not tried.`);
  return count('broken') > 0 ? EXIT.wrong : EXIT.done;
}

function lineOf(number: number, { one, transport }: Trial, verdict: Verdict): string {
  const title = `${number} - ${transport}: ${one.name} (${one.rules.join(', ')})`;
  if (verdict.is === 'kept') return `ok ${title}`;
  if (verdict.is === 'untried') return `ok ${title} # SKIP ${verdict.why}`;
  return `not ok ${title}\n  ${verdict.why.replaceAll('\n', '\n  ')}`;
}
