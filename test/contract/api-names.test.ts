import { expect, it } from 'vitest';
import { isGroup, isKind, isKubernetesGroup, isLabel } from '../../src/contract/names.js';

const long = (length: number): string => 'a'.repeat(length);

it.each(['a', 'web-1', long(63)])('takes %s as a label', (name) => {
  expect(isLabel(name)).toBe(true);
});

it.each(['', 'A', '1a', 'a-', 'a.b', long(64), 1, undefined])('takes %s as no label', (name) => {
  expect(isLabel(name)).toBe(false);
});

it.each(['example.com', '1.example.com', `${long(63)}.com`])('takes %s as a group', (name) => {
  expect(isGroup(name)).toBe(true);
});

it.each([
  ...[
    'apps',
    'Web.example.com',
    'a..b',
    '-a.b',
    'a.b.',
    `${long(64)}.com`,
    `${long(62)}.`.repeat(4) + 'comm',
  ],
  ...[undefined, 7],
])('takes %s as no group', (name) => {
  expect(isGroup(name)).toBe(false);
});

it('knows the groups of Kubernetes', () => {
  expect(['k8s.io', 'networking.k8s.io', 'kubernetes.io'].every(isKubernetesGroup)).toBe(true);
  expect(['cluster.x-k8s.io', 'k8s.io.example.com'].some(isKubernetesGroup)).toBe(false);
});

it('takes PascalCase alone as a kind', () => {
  expect(['A', 'HTTPRoute', 'V2'].every(isKind)).toBe(true);
  expect(['a', 'A-b', `A${long(63)}`, '', 1].some(isKind)).toBe(false);
});
