import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { z } from 'zod';
import type { ServiceClient } from '../auth/service.ts';
import { Secret } from '../common/secret.ts';
import { SWITCHED_LAYERS } from '../graphql/layers.ts';
import { parseRedisUrl } from '../redis/url.ts';
import { BANK_FIELD_NAMES, type BankField, type BankFieldNames } from '../upstream/banks.ts';
import { clientsIn } from './clients-file.ts';

// The types of variables. Each description says what is wanted, for the message about another value.

export const integer = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d+$/)
    .transform(Number)
    .refine((value) => value >= min && value <= max)
    .describe(`a whole number from ${min} to ${max}`);

export const flag = () =>
  z
    .enum(['true', 'false'])
    .transform((value) => value === 'true')
    .describe('true or false');

const anyHttpUrl = () =>
  z
    .string()
    .refine((value) => URL.canParse(value) && /^https?:$/.test(new URL(value).protocol), { abort: true });

/** Neither fetch nor undici sends a user and a password that stand in an address. */
export const httpUrl = () =>
  anyHttpUrl()
    .refine(
      (value) => {
        const { username, password } = new URL(value);
        return username === '' && password === '';
      },
      { abort: true },
    )
    .describe('an http or https address without user and password');

/** Paths are appended to it. Its host is in small letters and punycode, as others write it who read an address before they show it. */
export const baseUrl = () =>
  anyHttpUrl()
    .transform((value) => new URL(value).href.replace(/(?<!\/)\/+$/, ''))
    .describe('an http or https address');

export const origin = () =>
  httpUrl()
    .refine(
      (value) => {
        const { pathname, search } = new URL(value);
        return pathname === '/' && search === '';
      },
      { abort: true },
    )
    .transform((value) => new URL(value).origin)
    .describe('an http or https origin with no path, such as https://api.example.mx');

export const network = () => z.string().refine(isNetwork);

/** True for an IP address, or one with the length of a prefix. */
function isNetwork(value: string): boolean {
  const [address = '', bits, ...rest] = value.split('/');
  const longest = isIP(address) === 6 ? 128 : 32;
  const isLength = bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= longest);
  return isIP(address) !== 0 && isLength && rest.length === 0;
}

export const list = (item: z.ZodType<string, string>) =>
  z
    .string()
    .transform((value) => value.split(',').map((part) => part.trim()))
    .pipe(z.array(item).min(1));

/** The layers that can be left out because answers do not depend on them. */
export const layers = () =>
  z
    .string()
    .transform((value) => value.split(',').map((part) => part.trim()))
    .pipe(z.array(z.enum(SWITCHED_LAYERS)).min(1))
    .describe(`layers of docs/layers.md, comma-separated: ${SWITCHED_LAYERS.join(', ')}`);

export const text = (description: string) => z.string().describe(description);

export const secret = (description: string) =>
  z
    .string()
    .transform((value) => new Secret(value))
    .describe(description);

/** A file that is read at once. It holds secrets, which are never repeated. */
export const clientsFile = () =>
  z
    .string()
    .transform((path, context): readonly [ServiceClient, ...ServiceClient[]] => {
      try {
        return clientsIn(path);
      } catch {
        context.addIssue({ code: 'custom' });
        return z.NEVER;
      }
    })
    .describe(
      'a JSON file: a list of clients with clientId (a UUID, each once), clientSecret and apiKey each',
    );

export const certificateFile = () =>
  z
    .string()
    .refine((path) => parses(path, (pem) => new X509Certificate(pem)))
    .describe('the path of a PEM file with certificates, which this process may read');

export const keyFile = () =>
  z
    .string()
    .refine((path) => parses(path, createPrivateKey))
    .describe('the path of a PEM file with a private key without a passphrase, which this process may read');

function parses(path: string, parse: (pem: string) => unknown): boolean {
  try {
    parse(readFileSync(path, 'utf8'));
    return true;
  } catch {
    return false;
  }
}

/** Checked in full, so that the message can say what is wrong. The value holds a password, and is not repeated. */
export const redisUrl = () =>
  z.string().transform((value, context) => {
    try {
      parseRedisUrl(value);
    } catch (error) {
      context.addIssue({ code: 'custom', message: error instanceof Error ? error.message : String(error) });
    }
    return new Secret(value);
  });

export const HOST_NAMES = 'host names without ports, comma-separated';
/** A host in the form of a URL, which requests carry. */
export const host = () =>
  z
    .string()
    .transform((value) => value.toLowerCase())
    .refine((value) => URL.canParse(`http://${value}`) && new URL(`http://${value}`).host === value);

/** Returns the names of bank fields: the given ones replace the known ones. */
export function bankFieldNames(pairs: readonly (readonly string[])[]): BankFieldNames {
  const namesOf = (field: BankField): readonly string[] => {
    const names = pairs.flatMap(([of, name]) => (of === field && name !== undefined ? [name] : []));
    return names.length > 0 ? names : BANK_FIELD_NAMES[field];
  };
  return {
    name: namesOf('name'),
    institutionCode: namesOf('institutionCode'),
    clabeCode: namesOf('clabeCode'),
  };
}
