import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { connect } from 'node:tls';
import { addAuthority, dropOldAuthority, renewCertificate } from '../../helpers/private-ca.ts';
import { readCertificates, type Stage } from './stage.ts';
import { restartAll, type Step } from './step.ts';

/** @throws where a server shows a certificate that the authority (PEM) has not signed */
async function requireSignedBy(authority: string, { store }: Stage): Promise<void> {
  const { certificates, primary, replica, sentinel } = store;
  const [cert, key] = await Promise.all(
    [certificates.certificate, certificates.key].map((file) => readFile(file)),
  );
  for (const { tlsPort: port } of [primary, replica, sentinel]) {
    const socket = connect({ host: '127.0.0.1', port, ca: authority, cert, key });
    await once(socket, 'secureConnect');
    socket.destroy();
  }
}

export const AUTHORITY: Step = {
  name: "Redis' authority renewed",
  done: 'The authority of all certificates of Redis, the Sentinel and the gateways gives way to another: both are trusted everywhere, with a rolling restart; then all get certificates of the new one; then it alone is trusted, with another restart.',
  async run(stage) {
    const { store } = stage;
    const folder = dirname(store.certificates.authority);
    await addAuthority(folder);
    await readCertificates(store);
    await restartAll(stage);

    await renewCertificate(folder, 'next');
    await readCertificates(store);

    const authority = await dropOldAuthority(folder);
    await restartAll(stage);
    await readCertificates(store);
    await requireSignedBy(authority, stage);
  },
};
