import { enableCompileCache } from 'node:module';
import { join } from 'node:path';

// Most of a start is reading and compiling sources. What has been compiled is kept beside the packages, where only those
// can write who could change the sources as well; where that is nobody, every start compiles.
enableCompileCache(join(import.meta.dirname, '../node_modules/.cache/pasarela'));
await import('./gateway.ts');
