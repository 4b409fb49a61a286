/** The address of a sandbox, and one of its clients: `createSandbox` of `@pasarela/sandbox` returns one. */
export interface SandboxAccess {
  /** Origin, such as `http://127.0.0.1:4010`. */
  readonly url: string;
  readonly clientId: string;
  readonly accessToken: string;
}
