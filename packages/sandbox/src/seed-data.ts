/** Someone registered to receive money. An alias or holder that says "Late receipt", "No receipt" or "Other holder" decides the outcome of a CEP. */
export interface ReceiverSeed {
  alias: string;
  holder: string;
  rfc: string;
}

export interface CustomerSeed {
  name: string;
  rfc: string;
  alias: string;
  representative: { name: string; rfc: string; phone: string };
  /** Aliases of its private accounts; one that starts with "Bloqueada" ends up blocked, with money in it. */
  accounts: readonly string[];
  clabes: readonly ReceiverSeed[];
  cards: readonly ReceiverSeed[];
}

export interface ClientSeed {
  name: string;
  rfc: string;
  /** Aliases of its accounts besides the centralizing one. */
  accounts: readonly string[];
  clabes: readonly ReceiverSeed[];
  cards: readonly ReceiverSeed[];
  /** Customers whose KYB has passed. */
  customers: readonly CustomerSeed[];
  /** Customers made just now, whose KYB is PENDING. */
  newcomers: readonly CustomerSeed[];
}

const receiver = (alias: string, holder: string, rfc = 'ND'): ReceiverSeed => ({ alias, holder, rfc });

export const DEMO_CLIENT: ClientSeed = {
  name: 'Comercializadora Alameda SA de CV',
  rfc: 'CAL150312QK8',
  accounts: ['Nómina'],
  clabes: [
    receiver('Proveedor de empaques', 'Empaques del Bajío SA de CV', 'EBA090511TR3'),
    receiver('Renta de bodega', 'Rosa Elena Castro Vega', 'CAVR750823H17'),
    receiver('Late receipt', 'Late receipt', 'ND'),
    receiver('No receipt', 'No receipt', 'ND'),
    receiver('Other holder', 'Laura Méndez Ortiz', 'MEOL860917QB4'),
  ],
  cards: [
    receiver('Mensajería', 'Jorge Luis Peña Ortiz', 'PEOJ880214MN5'),
    receiver('Diseño', 'Ana Sofía Núñez Ríos', 'NURA910730J82'),
    receiver('Viáticos norte', 'Carlos Ibarra Luna'),
    receiver('Viáticos sur', 'Marisol Tun Chan'),
    receiver('Mantenimiento', 'Pedro Salas Quiroz', 'SAQP690119P41'),
    receiver('Limpieza', 'Guadalupe Ortega Mora'),
  ],
  customers: [
    {
      name: 'Papelería La Estrella SA de CV',
      rfc: 'PES110405LM2',
      alias: 'la-estrella',
      representative: { name: 'Teresa Robles Garza', rfc: 'ROGT800612QA4', phone: '+525550100101' },
      accounts: ['Ventas La Estrella', 'Ahorro La Estrella'],
      clabes: [
        receiver('Imprenta', 'Talleres Gráficos Unión SA', 'TGU030918D91'),
        receiver('Socio', 'Teresa Robles Garza', 'ROGT800612QA4'),
      ],
      cards: [
        receiver('Repartidor', 'Luis Ángel Soto Paz'),
        receiver('Cajera', 'Brenda Ruiz Lara', 'RULB950303KS6'),
        receiver('Contadora', 'Olivia Franco Díaz'),
      ],
    },
    {
      name: 'Transportes del Golfo SA de CV',
      rfc: 'TGO981120SH1',
      alias: 'transportes-golfo',
      representative: { name: 'Manuel Acosta Cruz', rfc: 'AOCM720405PL0', phone: '+522290100102' },
      accounts: ['Fletes del Golfo', 'Bloqueada del Golfo'],
      clabes: [
        receiver('Taller', 'Servicio Diésel Boca SA de CV', 'SDB070222VX5'),
        receiver('Aseguradora', 'Seguros Marítimos SA', 'SMA850101AA9'),
      ],
      cards: [
        receiver('Operador 1', 'Ramiro Vela Cano'),
        receiver('Operador 2', 'Hugo Prieto Baena', 'PIBH830917RT1'),
      ],
    },
  ],
  newcomers: [
    {
      name: 'Estudio Nopal SC',
      rfc: 'ENO240801BB3',
      alias: 'estudio-nopal',
      representative: { name: 'Inés Cordero Gil', rfc: 'COGI900101ZZ4', phone: '+523330100103' },
      accounts: ['Cuenta Nopal'],
      clabes: [],
      cards: [receiver('Fotógrafa', 'Lía Montes Peralta')],
    },
  ],
};

export const UNRELATED_CLIENT: ClientSeed = {
  name: 'Distribuidora Ajena SA de CV',
  rfc: 'DAJ120909KL7',
  accounts: [],
  clabes: [receiver('Proveedor ajeno', 'Insumos Ajenos SA de CV', 'IAJ100203TY2')],
  cards: [receiver('Chofer ajeno', 'Raúl Medina Solís')],
  customers: [
    {
      name: 'Ferretería Otra SA de CV',
      rfc: 'FOT140214GH8',
      alias: 'ferreteria-otra',
      representative: { name: 'Sonia Bravo Trejo', rfc: 'BATS770707HJ2', phone: '+528110100104' },
      accounts: ['Caja Ferretería'],
      clabes: [receiver('Herrero', 'Forja Regia SA', 'FRE060606PP1')],
      cards: [receiver('Ayudante', 'Iván Leal Rocha')],
    },
    {
      name: 'Panadería Distinta SA de CV',
      rfc: 'PDI160520KD4',
      alias: 'panaderia-distinta',
      representative: { name: 'Elsa Quintero Vidal', rfc: 'QUVE820915RS3', phone: '+528110100105' },
      accounts: ['Caja Panadería'],
      clabes: [receiver('Molino', 'Molinos del Norte SA', 'MNO030303WW2')],
      cards: [receiver('Hornero', 'Raquel Olmos Tapia')],
    },
  ],
  newcomers: [],
};
