import type { AppServiceSpec } from '../../../src/kinds/app-service/spec.js';

export type Port = NonNullable<AppServiceSpec['ports']>[number];

/** What happens to a port when the ports of an AppService are edited. */
export interface PortEdit {
  /** What the port does. */
  readonly title: string;
  readonly from: readonly Port[];
  readonly to: readonly Port[];
  /** Which port has the node port of which one before, by their names; any other has a new one. */
  readonly keeps: Readonly<Record<string, string>>;
}

export const http = { name: 'http', port: 80 };
export const admin = { name: 'admin', port: 9000 };
const dns = { name: 'dns', port: 53 };

export const portEdits: readonly PortEdit[] = [
  {
    title: 'is renumbered under its name',
    from: [http, admin],
    to: [{ ...http, port: 8080 }, admin],
    keeps: { http: 'http', admin: 'admin' },
  },
  {
    title: 'swaps its number with another',
    from: [http, admin],
    to: [
      { name: 'http', port: 9000 },
      { name: 'admin', port: 80 },
    ],
    // By number, since that is what names an item of the list.
    keeps: { http: 'admin', admin: 'http' },
  },
  { title: 'is renamed', from: [http], to: [{ name: 'web', port: 80 }], keeps: { web: 'http' } },
  {
    title: 'is renamed and renumbered',
    from: [http],
    to: [{ name: 'web', port: 81 }],
    keeps: {},
  },
  { title: 'gets a name beside a second one', from: [{ port: 80 }], to: [http, admin], keeps: { http: '' } },
  {
    title: 'gets a twin of another protocol',
    from: [dns],
    to: [dns, { name: 'dns-udp', port: 53, protocol: 'UDP' }],
    keeps: { dns: 'dns' },
  },
  {
    title: 'gets its twin in front, which takes its name',
    from: [dns],
    to: [
      { name: 'dns', port: 53, protocol: 'UDP' },
      { name: 'dns-tcp', port: 53 },
    ],
    keeps: { 'dns-tcp': 'dns' },
  },
  {
    title: 'changes its protocol',
    from: [http, dns],
    to: [http, { ...dns, protocol: 'UDP' }],
    keeps: { http: 'http', dns: 'dns' },
  },
  { title: 'goes', from: [http, admin], to: [admin], keeps: { admin: 'admin' } },
  {
    title: 'changes its place',
    from: [http, admin],
    to: [admin, http],
    keeps: { http: 'http', admin: 'admin' },
  },
];
