import { html } from 'hono/html';
import { formatCents } from './amounts.ts';
import type { Cep, Instrument, Transaction } from './state.ts';
import type { World } from './world.ts';

const STATES: Readonly<Record<Cep['status'], string>> = {
  PENDING: 'Pendiente',
  DELAYED: 'Demorado',
  COMPLETED: 'Liquidado',
  FAILED: 'No disponible',
};

/** Made with the first receipt that is asked for: loading the names of months and time zones is no part of a start. */
const makeFormats = () => ({
  moment: new Intl.DateTimeFormat('es-MX', {
    dateStyle: 'long',
    timeStyle: 'medium',
    hourCycle: 'h23',
    timeZone: 'America/Mexico_City',
  }),
  pesos: new Intl.NumberFormat('es-MX', { style: 'currency', currency: 'MXN' }),
});
let formats: ReturnType<typeof makeFormats> | undefined;

type Rows = readonly (readonly [label: string, value: string])[];

/** A receipt (CEP) in the words of Banco de México's own, with a notice that it is none. */
export function receiptPage(world: World, validation: Transaction): ReturnType<typeof html> {
  const { cep, source, destination, amount, trackingId, description, externalReference } = validation;
  const later = cep?.status === 'FAILED' ? 'No disponible' : 'Pendiente';
  formats ??= makeFormats();
  const { moment: date, pesos } = formats;
  const moment = (at: number | undefined) => (at === undefined ? later : date.format(at));
  const transfer: Rows = [
    ['Estado', cep === undefined ? '' : STATES[cep.status]],
    ['Fecha de operación', date.format(validation.createdAt)],
    ['Fecha de procesamiento', moment(cep?.processedAt)],
    ['Clave de rastreo', trackingId],
    ['Referencia numérica', externalReference],
    ['Concepto del pago', description],
    ['Monto', `${pesos.format(formatCents(amount) as `${number}`)} MXN`],
  ];
  const payer: Rows = [
    ['Institución emisora', bankOf(world, source)],
    ['Nombre', source.detail.holderName],
    ['CLABE', clabeOf(source)],
    ['RFC', rfcOf(source.rfc)],
  ];
  const receiver: Rows = [
    ['Institución receptora', bankOf(world, destination)],
    ['Nombre', cep?.beneficiaryName ?? later],
    ['CLABE', clabeOf(destination)],
    ['RFC', cep?.beneficiaryRfc === undefined ? later : rfcOf(cep.beneficiaryRfc)],
  ];
  return html`<!doctype html>
    <html lang="es-MX">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>Comprobante Electrónico de Pago</title>
        <link rel="stylesheet" href="/page/style.css" />
      </head>
      <body class="receipt">
        <main>
          <h1>Comprobante Electrónico de Pago</h1>
          <p class="notice">
            Entorno de pruebas: este comprobante es una muestra. No se movió dinero y el Banco de México no tiene registro de
            esta operación.
          </p>
          ${part('Transferencia', transfer)} ${part('Ordenante', payer)} ${part('Beneficiario', receiver)}
        </main>
      </body>
    </html>`;
}

const part = (title: string, rows: Rows) => html`
  <h2>${title}</h2>
  <table>
    ${rows.map(([label, value]) => html`<tr><th scope="row">${label}</th><td>${value}</td></tr>`)}
  </table>
`;

const bankOf = ({ state }: World, { bankId }: Instrument): string => state.banks.get(bankId)?.name ?? bankId;

const clabeOf = ({ detail }: Instrument): string => (detail.kind === 'clabe' ? detail.clabeNumber : '');

/** The service writes `ND` where it knows none. */
const rfcOf = (rfc: string): string => (rfc === 'ND' ? 'No disponible' : rfc);
