import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { goProgram } from './go-program.js';
import type { Outcome } from './installation.js';

/** The tools, by the folder whose go.mod pins them. */
const TOOLS = {
  helm: 'helm',
  'kube-score': 'manifests',
  kubeconform: 'manifests',
} as const;

export type Tool = keyof typeof TOOLS;

/** Where a tool is. The first to ask builds it, which takes minutes: ask before the tests, which have less time. */
export async function goToolPath(tool: Tool): Promise<string> {
  return goProgram({ name: tool, folder: `test/install/tools/${TOOLS[tool]}` });
}

/** Runs a tool, however it ends. It finds nothing of its user's. */
export async function goTool(tool: Tool, args: readonly string[], home: string): Promise<Outcome> {
  const file = await goToolPath(tool);
  const env = { PATH: process.env.PATH, HOME: home };
  try {
    const { stdout, stderr } = await promisify(execFile)(file, args, { env, maxBuffer: 64 * 1024 * 1024 });
    return { code: 0, stdout, stderr };
  } catch (error) {
    const { code, stdout, stderr } = error as { code?: unknown; stdout: string; stderr: string };
    if (typeof code !== 'number') throw error;
    return { code, stdout, stderr };
  }
}
