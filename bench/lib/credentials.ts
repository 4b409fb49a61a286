import { CLIENT_ID } from '../upstream/data.ts';

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/** Access tokens of as many different callers of one client. The stub accepts whatever it is shown. */
export const credentials = (count: number, clientId = CLIENT_ID): readonly string[] =>
  Array.from(
    { length: count },
    (_, index) =>
      `Bearer ${encode({ alg: 'HS256', typ: 'JWT' })}.${encode({ client_id: clientId, jti: `caller-${index}` })}.${'x'.repeat(43)}`,
  );
