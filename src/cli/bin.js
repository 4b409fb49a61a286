#!/usr/bin/env node
import { requireNode } from '../common/node-version.js';

requireNode('npx -p node@26 -p pasarela pasarela');
const { enableCompileCache, setSourceMapsSupport } = await import('node:module');
const { join } = await import('node:path');

// Where `npm run build` has put this file, compiled code is kept in the package's own folder. A folder that all users share, which
// is Node's default, would let another user of the machine choose what runs here.
enableCompileCache(join(import.meta.dirname, '../node_modules/.cache/pasarela'));
// Stack traces then name the lines of the sources. Node reads a map once a trace is asked for.
setSourceMapsSupport(true, { nodeModules: true });
await import('./pasarela.ts');
