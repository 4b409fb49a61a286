import { adviceOnNode } from '../common/node-version.js';

// The tests of others may run on any Node: they are told, and not ended.
const advice = adviceOnNode('npm install --save-dev node@26 && npx node --test');
if (advice !== undefined) throw new Error(advice);

/** `pasarela/testing` as `npm run build` packs it. */
export const { createGateway } = await import('./testing.ts');
