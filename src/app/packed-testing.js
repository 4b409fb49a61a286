import { adviceOnNode } from '../common/node-version.js';

// The tests of others may run on any Node: they are told, and not ended.
const advice = adviceOnNode('npm install --save-dev node@26 && npx node --test');
if (advice !== undefined) throw new Error(advice);

/**
 * `pasarela/testing` as `npm run build` packs it. It loads the gateway when it is called: no module that waits for another as it is loaded
 * can be had by `require`, which Playwright and others make of the imports of a test.
 */
export const createGateway = async (/** @type {import('./testing.ts').TestGatewayOptions} */ options) =>
  (await import('./testing.ts')).createGateway(options);
