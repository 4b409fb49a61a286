/**
 * A module for Node's `--import`. It writes into the file that DISK_ORDER names in which order the process writes its standard output
 * (`output`), syncs it (`sync`), and writes or renames another file (`place`).
 */
export const DISK_ORDER = `data:text/javascript,${encodeURIComponent(`
  import fs from 'node:fs';
  import promises from 'node:fs/promises';
  import { syncBuiltinESMExports } from 'node:module';
  const { fdatasync, writeFileSync, writeSync } = fs;
  const { rename } = promises;
  const order = [];
  const note = (what) => {
    if (order.at(-1) === what) return;
    order.push(what);
    writeFileSync(process.env.DISK_ORDER, order.join(' '));
  };
  fs.writeSync = (file, ...rest) => {
    if (file !== 2) note(file === 1 ? 'output' : 'place');
    return writeSync(file, ...rest);
  };
  fs.fdatasync = (file, done) => {
    if (file === 1) note('sync');
    fdatasync(file, done);
  };
  promises.rename = (...paths) => {
    note('place');
    return rename(...paths);
  };
  syncBuiltinESMExports();
`)}`;
