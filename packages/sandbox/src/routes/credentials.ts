import { z } from 'zod';
import { issueToken } from '../auth.ts';
import type { RestAnswers } from '../endpoints.ts';
import { otherClient, unauthenticated } from '../errors.ts';
import { type App, answer, operation, readBody, uuid } from '../http.ts';
import { viewCredential, viewToken } from '../views.ts';
import type { World } from '../world.ts';

const tokenRequest = z.object({ client_id: uuid, client_secret: z.string().min(1) });

/** Endpoints 1 and 2. */
export function credentialRoutes(app: App, world: World): void {
  app.get('/v1/clients/:clientId/credentials', operation('Credentials', 'ListCredentials'), (c) => {
    const client = world.state.clients.get(c.get('clientId'));
    const data = client?.credentials.map((credential) => viewCredential(world, client, credential)) ?? [];
    return answer<RestAnswers['GET /v1/clients/{clientId}/credentials']>(c, world, { data });
  });

  app.post(
    '/v1/clients/:clientId/auth/credential-tokens',
    operation('Credentials', 'CreateCredentialToken'),
    async (c) => {
      const body = await readBody(c, tokenRequest);
      const client = world.state.clients.get(c.get('clientId'));
      if (client === undefined || body.client_id.toLowerCase() !== client.id) {
        throw otherClient(world.choices);
      }
      const credential = client.credentials.find(
        ({ status, secret }) => status === 'ACTIVE' && secret === body.client_secret,
      );
      if (credential === undefined) throw unauthenticated();
      return answer<RestAnswers['POST /v1/clients/{clientId}/auth/credential-tokens']>(
        c,
        world,
        viewToken(world, await issueToken(world, client, credential)),
      );
    },
  );
}
