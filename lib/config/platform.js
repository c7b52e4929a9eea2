'use strict'

// Where the process runs, by what variables and files say: container, Kubernetes, functions, clouds. Never by a
// request: a metadata server that is not there costs a second at every start.
// Command lines and users are not looked at, because there are secrets in them.
// https://opentelemetry.io/docs/specs/semconv/resource/

const fs = require('node:fs')

const CGROUP = '/proc/self/cgroup'
const MOUNTS = '/proc/self/mountinfo'
const NAMESPACE = '/var/run/secrets/kubernetes.io/serviceaccount/namespace'

const FILE_BYTES_MAX = 65536
const PIECE_BYTES = 8192
const VALUE_CHARS_MAX = 1024
const MEBIBYTE = 1024 * 1024

const ID_CHARS = 64

// What stands before the id: a slash, `docker-` or `cri-containerd-`, or a last colon. What may follow it: `.scope`,
// and what a container that runs systemd or podman has below.
const CGROUP_ID = /[/:-]([0-9a-f]{64})(?=\.scope|\/|$)/g
const FARGATE_ID = /\/([0-9a-f]{32}-[0-9]{6,12})$/
// Docker's containers/<id>/hostname, Podman's and CRI-O's overlay-containers/<id>/userdata/hostname. containerd has
// sandboxes/<id>/hostname, which is the pod's and no container's.
const HOSTNAME_MOUNT = /[/-]containers\/([0-9a-f]{64})\/\S*$/
const POD_MOUNT = /\/pods\/([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32})\/etc-hosts$/
const CONTAINER_MOUNT = /\/pods\/[0-9a-f-]{32,36}\/containers\/([^/\s]{1,63})\/[^/\s]{1,64}$/

module.exports = { detectPlatform, serverlessPlatform }

/**
 * @param {Environment} env
 * @param {(path: string) => string} [read] '' for a file that cannot be read
 * @returns {object} attributes
 */
function detectPlatform (env, read = readStart) {
  const found = {}
  const isKubernetes = env.text('KUBERNETES_SERVICE_HOST') !== undefined
  const cgroup = read(CGROUP)
  let containerId = containerIn(cgroup)
  if (containerId === undefined || isKubernetes) {
    const mounts = read(MOUNTS)
    containerId ??= inMount(mounts, '/etc/hostname', HOSTNAME_MOUNT)
    if (isKubernetes) addPod(found, env, mounts, read)
  }
  add(found, { 'container.id': containerId })
  add(found, functionOf(env, isKubernetes))
  return found
}

/** Who freezes or ends the process between requests, where somebody does: 'vercel', 'lambda', 'cloud_run', or null. */
function serverlessPlatform (env) {
  if (env.text('VERCEL') !== undefined) return 'vercel'
  if (env.text('AWS_LAMBDA_FUNCTION_NAME') !== undefined) return 'lambda'
  const isCloudRun = env.text('K_SERVICE', 'CLOUD_RUN_JOB') !== undefined && env.text('KUBERNETES_SERVICE_HOST') === undefined
  return isCloudRun ? 'cloud_run' : null
}

/** Of the first line that has one, the innermost. */
function containerIn (cgroup) {
  for (const line of cgroup.split('\n')) {
    if (line.length < ID_CHARS) continue // a Fargate id is shorter, and its line is not
    const ids = [...line.matchAll(CGROUP_ID)]
    if (ids.length > 0) return ids.at(-1)[1]
    const fargate = FARGATE_ID.exec(line)
    if (fargate !== null) return fargate[1]
  }
  return undefined
}

/** What a pattern finds in the place that is mounted at `point`: the fourth field of a line, before the point. */
function inMount (mounts, point, pattern) {
  const at = mounts.indexOf(` ${point} `)
  return at === -1 ? undefined : pattern.exec(mounts.slice(mounts.lastIndexOf('\n', at) + 1, at))?.[1]
}

// The variables are the names under which the downward API is used most: the operator's, and those of examples.
function addPod (found, env, mounts, read) {
  const node = env.text('K8S_NODE_NAME', 'NODE_NAME', 'OTEL_RESOURCE_ATTRIBUTES_NODE_NAME')
  const host = env.text('HOSTNAME')
  add(found, {
    // In the host's network the name is the node's.
    'k8s.pod.name': env.text('K8S_POD_NAME', 'POD_NAME', 'OTEL_RESOURCE_ATTRIBUTES_POD_NAME') ?? (host === node ? undefined : host),
    'k8s.pod.uid': env.text('K8S_POD_UID', 'POD_UID', 'OTEL_RESOURCE_ATTRIBUTES_POD_UID') ?? inMount(mounts, '/etc/hosts', POD_MOUNT),
    'k8s.namespace.name': env.text('K8S_NAMESPACE_NAME', 'K8S_NAMESPACE', 'POD_NAMESPACE') ?? read(NAMESPACE).trim(),
    'k8s.node.name': node,
    'k8s.container.name': env.text('K8S_CONTAINER_NAME', 'CONTAINER_NAME') ?? inMount(mounts, '/dev/termination-log', CONTAINER_MOUNT)
  })
}

function functionOf (env, isKubernetes) {
  if (env.text('VERCEL') !== undefined) return { 'cloud.region': env.text('VERCEL_REGION') } // beneath it is a Lambda that is not the user's
  if (env.text('AWS_LAMBDA_FUNCTION_NAME') !== undefined) return lambda(env)
  if (env.text('ECS_CONTAINER_METADATA_URI_V4', 'ECS_CONTAINER_METADATA_URI') !== undefined) {
    return { 'cloud.provider': 'aws', 'cloud.platform': 'aws_ecs', 'cloud.region': env.text('AWS_REGION', 'AWS_DEFAULT_REGION') }
  }
  if (env.text('GAE_SERVICE') !== undefined) {
    return { ...google('gcp_app_engine'), 'faas.name': env.text('GAE_SERVICE'), 'faas.version': env.text('GAE_VERSION'), 'faas.instance': env.text('GAE_INSTANCE') }
  }
  if (env.text('K_SERVICE') !== undefined) return service(env, isKubernetes)
  if (env.text('CLOUD_RUN_JOB') !== undefined) return job(env)
  return env.text('WEBSITE_SITE_NAME') === undefined ? {} : azure(env)
}

function lambda (env) {
  const megabytes = Number(env.text('AWS_LAMBDA_FUNCTION_MEMORY_SIZE'))
  const logGroup = env.text('AWS_LAMBDA_LOG_GROUP_NAME')
  return {
    'cloud.provider': 'aws',
    'cloud.platform': 'aws_lambda',
    'cloud.region': env.text('AWS_REGION'),
    'faas.name': env.text('AWS_LAMBDA_FUNCTION_NAME'),
    'faas.version': env.text('AWS_LAMBDA_FUNCTION_VERSION'),
    'faas.instance': env.text('AWS_LAMBDA_LOG_STREAM_NAME'),
    'faas.max_memory': Number.isInteger(megabytes) ? megabytes * MEBIBYTE : undefined,
    'aws.log.group.names': logGroup === undefined ? undefined : [logGroup]
  }
}

/** Cloud Run, and functions on it. Knative sets the same variables on any cluster. */
function service (env, isKubernetes) {
  const isFunction = env.text('FUNCTION_TARGET') !== undefined
  return {
    ...isKubernetes ? {} : google(isFunction ? 'gcp_cloud_functions' : 'gcp_cloud_run'),
    'faas.name': env.text('K_SERVICE'),
    'faas.version': env.text('K_REVISION')
  }
}

function job (env) {
  const index = Number(env.text('CLOUD_RUN_TASK_INDEX'))
  return {
    ...google('gcp_cloud_run'),
    'faas.name': env.text('CLOUD_RUN_JOB'),
    'gcp.cloud_run.job.execution': env.text('CLOUD_RUN_EXECUTION'),
    'gcp.cloud_run.job.task_index': Number.isInteger(index) ? index : undefined
  }
}

function google (platform) {
  return { 'cloud.provider': 'gcp', 'cloud.platform': platform }
}

function azure (env) {
  const isFunction = env.text('FUNCTIONS_EXTENSION_VERSION') !== undefined
  return {
    'cloud.provider': 'azure',
    'cloud.platform': isFunction ? 'azure.functions' : 'azure.app_service',
    'cloud.region': env.text('REGION_NAME'),
    'faas.name': isFunction ? env.text('WEBSITE_SITE_NAME') : undefined,
    'faas.instance': isFunction ? env.text('WEBSITE_INSTANCE_ID') : undefined
  }
}

function add (found, attributes) {
  for (const key of Object.keys(attributes)) {
    const value = attributes[key]
    if (value === undefined || value === '') continue
    found[key] = typeof value === 'string' ? value.slice(0, VALUE_CHARS_MAX) : value
  }
}

/** Files of /proc come in pieces, and have no size. */
function readStart (path) {
  let file
  try {
    file = fs.openSync(path, 'r')
    const bytes = Buffer.allocUnsafe(PIECE_BYTES)
    let text = ''
    for (let read = -1; read !== 0 && text.length < FILE_BYTES_MAX;) {
      read = fs.readSync(file, bytes, 0, PIECE_BYTES, null)
      text += bytes.latin1Slice(0, read)
    }
    return text
  } catch { // another system, or no permission
    return ''
  } finally {
    if (file !== undefined) fs.closeSync(file)
  }
}
