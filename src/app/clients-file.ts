import { readFileSync } from 'node:fs';
import { z } from 'zod';
import type { ServiceClient } from '../auth/service.ts';
import { Secret } from '../common/secret.ts';

const secret = z
  .string()
  .min(1)
  .transform((value) => new Secret(value));
const Clients = z
  .array(
    z.strictObject({
      clientId: z.guid().transform((id) => id.toLowerCase()),
      clientSecret: secret,
      apiKey: secret,
    }),
  )
  .refine((clients) => new Set(clients.map(({ clientId }) => clientId)).size === clients.length);

/** @throws if the file cannot be read, holds something else, holds no client, or holds one twice */
export function clientsIn(path: string): readonly [ServiceClient, ...ServiceClient[]] {
  const [first, ...rest] = Clients.parse(JSON.parse(readFileSync(path, 'utf8')));
  if (first === undefined) throw new RangeError('no client');
  return [first, ...rest];
}
