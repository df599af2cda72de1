import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { parse } from 'yaml';
import { openSandbox } from '../../sandbox/client.js';
import { loadKubeconfig } from '../../src/client/kubeconfig.js';
import { UndiciTransport } from '../../src/client/transport.js';
import { identityOf } from '../../src/testing/account.js';
import { accountKubeconfig, Cluster } from '../support/cluster.js';

const user = 'operator-credentials';
const sandbox = openSandbox(inject('sandbox'));
const cluster = new Cluster(sandbox);
let folder: string;
let account: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'credentials-'));
  account = await accountKubeconfig(cluster, user);
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await cluster.close();
});

interface UserInfo {
  readonly username: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

const tokenIn = (kubeconfig: string): string =>
  (parse(readFileSync(kubeconfig, 'utf8')) as { users: [{ user: { token: string } }] }).users[0].user.token;

/** Who the API server takes somebody for who comes with these fields of a kubeconfig's user. */
async function whoIs(kubeconfig: string, fields: object): Promise<UserInfo> {
  const content = parse(readFileSync(kubeconfig, 'utf8')) as { users: { user: object }[] };
  for (const entry of content.users) entry.user = fields;
  const path = join(folder, 'config');
  writeFileSync(path, JSON.stringify(content));
  const transport = new UndiciTransport(loadKubeconfig({ kubeconfig: path, env: {} }), 'test');
  try {
    const { status, body } = await transport.request({
      ...{ method: 'POST', path: '/apis/authentication.k8s.io/v1/selfsubjectreviews' },
      body: { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' },
    });
    expect(status).toBe(201);
    return (body as { status: { userInfo: UserInfo } }).status.userInfo;
  } finally {
    await transport.close();
  }
}

test("a token in a file is its account's", async () => {
  writeFileSync(join(folder, 'token'), `${tokenIn(account)}\n`);
  expect(await whoIs(account, { tokenFile: 'token' })).toMatchObject({
    username: identityOf(user),
  });
});

test('a credential plugin whose token is refused is run again, and the request gets through', async () => {
  const credential = (token: string): string =>
    JSON.stringify({
      ...{ apiVersion: 'client.authentication.k8s.io/v1', kind: 'ExecCredential' },
      status: { token },
    });
  const login = join(folder, 'login');
  writeFileSync(
    login,
    `#!/bin/sh\ncd "${folder}"\nif [ -e ran ]; then echo '${credential(tokenIn(account))}'; ` +
      `else echo '${credential('expired')}'; touch ran; fi\n`,
  );
  chmodSync(login, 0o700);
  const exec = {
    apiVersion: 'client.authentication.k8s.io/v1',
    command: './login',
    interactiveMode: 'Never',
  };
  expect(await whoIs(account, { exec })).toMatchObject({ username: identityOf(user) });
});
