import { type Command, readArguments, refuseArguments } from './command.ts';

const takeNothing = (args: readonly string[]): void => refuseArguments(readArguments(args, {}).positionals);

/** Runs the gateway, as `npm start` does. */
export const serve: Command = {
  help: `Usage: pasarela serve

Starts the gateway, as npm start does, until SIGINT, SIGTERM or SIGHUP, which a terminal sends as it is closed. It then serves on for
SHUTDOWN_DELAY_MS, takes no new work from there on, finishes what is in flight and ends. A second signal, a second later or
more, ends it at once.

It takes no options: the variables of docs/configuration.md configure it. Without UPSTREAM_URL an embedded sandbox of the
REST service runs beside it, and no real money moves.

  PORT=4001 SANDBOX_PORT=4011 pasarela serve     beside another one

Exit codes: 0 ended by a signal; 130 ended at once by a second one; 1 it could not start, and the message says why.`,
  async run(args) {
    takeNothing(args);
    await import('../app/main.ts');
    return undefined;
  },
};

/** The sandbox alone: what `npm run sandbox` runs. */
export const sandbox: Command = {
  help: `Usage: pasarela sandbox

Starts the sandbox of the REST service alone, on 127.0.0.1, until SIGINT, SIGTERM or SIGHUP. SANDBOX_PORT, SANDBOX_SPEED
and SANDBOX_SEED configure it; docs/sandbox.md says what it can do.

  SANDBOX_SPEED=60 pasarela sandbox     receipts arrive within seconds

Exit codes: 0 ended by a signal; 130 ended at once by a second one; 1 it could not start, and the message says why.`,
  async run(args) {
    takeNothing(args);
    await import('./sandbox.ts');
    return undefined;
  },
};
