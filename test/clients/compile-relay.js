// What Relay's users have in their bundler: the tags of a module become imports of what relay-compiler wrote.
import { readFile, writeFile } from 'node:fs/promises';
import { argv } from 'node:process';
import { transformAsync } from '@babel/core';
import relay from 'babel-plugin-relay';

const [, , file] = argv;
const source = await readFile(file, 'utf8');
const { code } = await transformAsync(source, {
  filename: file,
  configFile: false,
  plugins: [[relay, { eagerEsModules: true }]],
});
// A bundler finds the file without its extension; Node wants it.
await writeFile(file, code.replaceAll(/(__generated__\/\w+\.graphql)(?=['"])/g, '$1.js'));
