import { alternativeChoices, defaultChoices, type SandboxOptions } from '../../packages/sandbox/src/index.ts';

/** The sandbox as it comes, and one in which everything that the spec leaves open is chosen otherwise. */
export const VARIANTS: readonly (readonly [name: string, options: Partial<SandboxOptions>])[] = [
  ['the sandbox as it comes', { choices: defaultChoices }],
  ['a sandbox that chooses otherwise where the spec is silent', { choices: alternativeChoices }],
];
