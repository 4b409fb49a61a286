import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { brotliDecompress, gzip } from 'node:zlib';

const decompress = promisify(brotliDecompress);
const compress = promisify(gzip);

/** What `npm run workbench` has built: each file compressed with brotli, as `<name>.br`. */
const BUILT = new URL('../../workbench/dist/', import.meta.url);
/** A flat name of the build: no path can be made of it. */
const NAME = /^[\w-]+(\.[\w-]+)+$/;

const TYPES: Readonly<Record<string, string>> = {
  css: 'text/css; charset=utf-8',
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
  ttf: 'font/ttf',
};

type Encoding = 'br' | 'gzip' | 'identity';

interface File {
  readonly bytes: Buffer;
  readonly etag: string;
}

/** The built files of the page, each in the encoding that its reader takes. */
export interface Assets {
  /**
   * Answers with the file of this name; with 404 where the build has none.
   *
   * @param headers are added to a 200.
   */
  send(
    request: IncomingMessage,
    response: ServerResponse,
    name: string,
    headers: Readonly<Record<string, string>>,
  ): Promise<void>;
}

/**
 * Reads nothing until a file is asked for. Each is read once: what was built is sent as it is to readers of brotli, and
 * is compressed with gzip for others the first time one asks.
 */
export function createAssets(): Assets {
  const kept = new Map<string, Promise<File | undefined>>();

  const encoded = async (name: string, encoding: Encoding): Promise<File | undefined> => {
    const built = await readFile(new URL(`${name}.br`, BUILT)).catch(ignoreMissing);
    if (built === undefined) return undefined;
    const etag = `"${createHash('sha256').update(built).digest('base64url').slice(0, 22)}-${encoding}"`;
    if (encoding === 'br') return { bytes: built, etag };
    const plain = await decompress(built);
    return { bytes: encoding === 'gzip' ? await compress(plain) : plain, etag };
  };

  const fileOf = async (name: string, encoding: Encoding): Promise<File | undefined> => {
    const key = `${name} ${encoding}`;
    const known = kept.get(key) ?? encoded(name, encoding);
    kept.set(key, known);
    let file: File | undefined;
    try {
      file = await known;
      return file;
    } finally {
      // Names that are not there are for strangers to choose, and what could not be read may be readable again: nothing is kept of them.
      if (file === undefined) kept.delete(key);
    }
  };

  return {
    async send(request, response, name, headers) {
      const encoding = encodingFor(request.headers['accept-encoding']);
      const file = NAME.test(name) ? await fileOf(name, encoding) : undefined;
      if (file === undefined) {
        response.writeHead(404, { 'content-type': 'text/plain' }).end('There is no such file.\n');
        return;
      }
      response.setHeaders(new Map(Object.entries(headers)));
      response.setHeader('etag', file.etag);
      response.setHeader('vary', 'accept-encoding');
      if (request.headers['if-none-match'] === file.etag) {
        response.writeHead(304).end();
        return;
      }
      response.writeHead(200, {
        'content-type': TYPES[name.slice(name.lastIndexOf('.') + 1)] ?? 'application/octet-stream',
        'content-length': file.bytes.length,
        ...(encoding === 'identity' ? {} : { 'content-encoding': encoding }),
      });
      response.end(request.method === 'HEAD' ? undefined : file.bytes);
    },
  };
}

function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error;
}

/** The best that is accepted (RFC 9110, 12.5.3). A weight of zero refuses; other weights are no reason to send more bytes. */
function encodingFor(accepted = ''): Encoding {
  const ranges = accepted.toLowerCase().split(',');
  const takes = (coding: string) =>
    ranges.some((range) => {
      const [name = '', ...parameters] = range.split(';').map((part) => part.trim());
      return name === coding && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
    });
  return takes('br') ? 'br' : takes('gzip') ? 'gzip' : 'identity';
}
