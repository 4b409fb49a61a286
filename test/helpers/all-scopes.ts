import { SCOPES } from '../../src/auth/caller.ts';

/** All scopes, as the claim of a token writes them. The parts of `money:move` are left out: it has them all. */
export const ALL_SCOPES: string = [...SCOPES].filter((scope) => !scope.startsWith('money:move:')).join(' ');
