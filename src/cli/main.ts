#!/usr/bin/env node
// Imports nothing before the check: an older Node fails on the modules, at what it lacks, and names no remedy.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major > 22 || (major === 22 && minor >= 19)) {
  const [{ program }, { execute }] = await Promise.all([import('./commands.js'), import('./exit.js')]);
  await execute(program());
} else {
  const needed = 'Node 22.19 or newer is needed, this is';
  process.stderr.write(`${needed} ${process.versions.node}: install Node 24 from https://nodejs.org\n`);
  process.exitCode = 2;
}
