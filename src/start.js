import { requireNode } from './common/node-version.js';

requireNode('npm ci && npm start');
const { enableCompileCache } = await import('node:module');
const { join } = await import('node:path');

// What main.ts begins with, before main.ts: taking the types out of a source, when it is not in the cache, takes a tenth
// of a start, and here is nothing to take out.
enableCompileCache(join(import.meta.dirname, '../node_modules/.cache/pasarela'));
await import('./app/main.ts');
