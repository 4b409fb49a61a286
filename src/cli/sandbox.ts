import { startSandbox } from '#sandbox';
import { readEnvironment } from '../app/config.ts';
import { listeningBy, runProgram } from '../app/lifecycle.ts';
import { entropy } from '../common/entropy.ts';

await runProgram(async ({ opened }) => {
  const variables = readEnvironment();
  const { SANDBOX_PORT, SANDBOX_SPEED, SANDBOX_SEED, SANDBOX_CUSTOMERS } = variables;
  const { SANDBOX_HOSTS, SANDBOX_WEBHOOK_HOSTS, PUBLIC_URL } = variables;
  const sandbox = await startSandbox({
    port: SANDBOX_PORT,
    speed: SANDBOX_SPEED,
    seed: SANDBOX_SEED,
    hosts: SANDBOX_HOSTS,
    webhookHosts: [
      ...SANDBOX_WEBHOOK_HOSTS,
      ...(PUBLIC_URL === undefined ? [] : [new URL(PUBLIC_URL).hostname]),
    ],
    customers: SANDBOX_CUSTOMERS,
    run: entropy.uuid(),
  }).catch(listeningBy('SANDBOX_PORT'));
  opened(() => sandbox.stop());
  process.stdout.write(`
The sandbox is ready: the transfer-and-account service, its clock ${SANDBOX_SPEED} times faster.

  A page          ${sandbox.url}
  What is there   ${sandbox.url}/sandbox
  Client          ${sandbox.clientId}
  Access token    ${sandbox.accessToken}

  curl -s ${sandbox.url}/v1/clients/${sandbox.clientId}/accounts -H 'authorization: Bearer ${sandbox.accessToken}'

Ctrl-C ends it.
`);
});
