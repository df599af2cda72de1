import { execFile } from 'node:child_process';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Sandbox } from '../../../sandbox/control-plane.js';
import { goTool } from '../../support/commands.js';
import { paths } from '../../../sandbox/layout.js';

interface Member {
  readonly name: string;
  readonly peerURLs: readonly [string];
}

/** Further than any write gets between a backup and its loss. */
const BUMP_REVISION = 1_000_000_000;

/** A backup of a sandbox's etcd, and how to go back to it. @see https://etcd.io/docs/v3.6/op-guide/recovery/ */
export class Backup {
  private constructor(
    private readonly sandbox: Sandbox,
    private readonly file: string,
    private readonly member: Member,
  ) {}

  static async take(sandbox: Sandbox): Promise<Backup> {
    const post = async (path: string): Promise<string> =>
      (await fetch(sandbox.etcdUrl + path, { method: 'POST', body: '{}' })).text();
    const { members } = JSON.parse(await post('/v3/cluster/member/list')) as { members: [Member] };
    const parts = (await post('/v3/maintenance/snapshot')).trim().split('\n');
    const blobs = parts.map((part) => (JSON.parse(part) as { result: { blob: string } }).result.blob);
    const file = join(sandbox.dir, 'backup.db');
    await writeFile(file, Buffer.concat(blobs.map((blob) => Buffer.from(blob, 'base64'))));
    return new Backup(sandbox, file, members[0]);
  }

  /** As Kubernetes' own instructions have it: with later revisions, so that no client takes old ones for new ones. */
  async restore(): Promise<void> {
    const { sandbox, file, member } = this;
    const program = await goTool('etcdutl');
    await sandbox.stopApiServer();
    await sandbox.stopEtcd();
    const { etcdData } = paths(sandbox);
    await rm(etcdData, { recursive: true });
    const peer = member.peerURLs[0];
    await promisify(execFile)(program, [
      ...['snapshot', 'restore', file, `--data-dir=${etcdData}`, `--name=${member.name}`],
      ...[`--initial-cluster=${member.name}=${peer}`, `--initial-advertise-peer-urls=${peer}`],
      ...[`--bump-revision=${BUMP_REVISION}`, '--mark-compacted'],
    ]);
    await sandbox.startEtcd();
    await sandbox.startApiServer();
  }
}
