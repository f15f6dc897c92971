/** Real servers and frameworks with the service mounted as their users would do it. */
import { Controller, Get, Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { getRequestListener } from '@hono/node-server'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { once } from 'node:events'
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http'
import { createSecureServer, createServer as createHttp2Server } from 'node:http2'
import { createServer as createHttpsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import 'reflect-metadata'
import type { HttpRequest, HttpResponse, RunService } from 'runwright/server'
import { certificate as cert, key } from '../../helpers/ws-certificate.js'

/** A service and the path that it was created for. */
export interface Mount {
  readonly service: RunService
  readonly basePath: string
}

/** A host whose own `GET /hello` answers {@link HELLO}. It listens on 127.0.0.1. */
export interface Host {
  readonly name: string
  readonly scheme: 'http' | 'https'
  /** HTTP versions that it supports. */
  readonly versions: readonly (1 | 2)[]
  open(mounts: readonly Mount[]): Promise<OpenHost>
}

export interface OpenHost {
  readonly server: Server
  readonly close: () => unknown
}

export const HELLO = 'hello from the host'

const own = (request: HttpRequest, response: HttpResponse): void => {
  const found = request.url === '/hello'
  response.statusCode = found ? 200 : 404
  response.end(found ? HELLO : 'the host has no such page')
}

/** One after the other; then the host's own routes. */
function chain(mounts: readonly Mount[], rest: RequestListener = own as RequestListener) {
  return (request: HttpRequest, response: HttpResponse): void => {
    const pass = (index: number): void => {
      const mount = mounts[index]
      if (mount !== undefined)
        return mount.service.handler(request, response, () => pass(index + 1))
      rest(request as IncomingMessage, response as ServerResponse)
    }
    pass(0)
  }
}

async function listening(server: object): Promise<OpenHost> {
  const plain = server as Server
  if (!plain.listening) {
    plain.listen(0, '127.0.0.1')
    await once(plain, 'listening')
  }
  return { server: plain, close: () => plain.close() }
}

class HelloController {
  hello(): string {
    return HELLO
  }
}
const method = Object.getOwnPropertyDescriptor(HelloController.prototype, 'hello')!
Get('hello')(HelloController.prototype, 'hello', method)
Controller()(HelloController)

class AppModule {}
Module({ controllers: [HelloController] })(AppModule)

/** Resolves when the service has answered, or has passed the request on. */
function answered(service: RunService, request: HttpRequest, response: HttpResponse) {
  return new Promise<boolean>((resolve) => {
    response.once('close', () => resolve(true))
    service.handler(request, response, () => resolve(false))
  })
}

const H1 = { scheme: 'http', versions: [1] } as const

export const HOSTS: readonly Host[] = [
  { ...H1, name: 'node:http', open: (mounts) => listening(createServer(chain(mounts))) },
  {
    name: 'node:https',
    scheme: 'https',
    versions: [1],
    open: (mounts) => listening(createHttpsServer({ cert, key }, chain(mounts))),
  },
  {
    name: 'node:http2',
    scheme: 'http',
    versions: [2],
    open: (mounts) => listening(createHttp2Server(chain(mounts))),
  },
  {
    name: 'node:http2 over TLS with allowHTTP1',
    scheme: 'https',
    versions: [1, 2],
    open: (mounts) => listening(createSecureServer({ cert, key, allowHTTP1: true }, chain(mounts))),
  },
  {
    ...H1,
    name: 'Express 5',
    open: (mounts) => {
      const app = express()
      for (const { service, basePath } of mounts) {
        if (basePath === '') app.use(service.handler)
        else app.use(basePath, service.handler)
      }
      app.get('/hello', (_request, response) => void response.send(HELLO))
      return listening(app.listen(0, '127.0.0.1'))
    },
  },
  {
    ...H1,
    name: 'Express 5 behind its body parsers',
    open: (mounts) => {
      const app = express()
      app.use(express.json(), express.urlencoded(), express.text({ type: 'text/*' }))
      for (const { service, basePath } of mounts) app.use(basePath || '/', service.handler)
      app.get('/hello', (_request, response) => void response.send(HELLO))
      return listening(app.listen(0, '127.0.0.1'))
    },
  },
  {
    ...H1,
    name: 'Fastify 5',
    async open(mounts) {
      const app = fastify()
      for (const { service } of mounts) {
        app.addHook('onRequest', (request, reply, done) =>
          service.handler(request.raw, reply.raw, () => done()),
        )
      }
      app.get('/hello', () => HELLO)
      await app.listen({ port: 0 })
      return { server: app.server, close: () => app.close() }
    },
  },
  {
    ...H1,
    name: 'Koa',
    open: (mounts) => {
      const app = new Koa()
      for (const { service } of mounts) {
        app.use(async (context, next) => {
          if (!(await answered(service, context.req, context.res))) return next()
          context.respond = false
        })
      }
      app.use((context) => {
        if (context.path === '/hello') context.body = HELLO
      })
      return listening(app.listen(0, '127.0.0.1'))
    },
  },
  {
    ...H1,
    name: 'Hono',
    open: (mounts) => {
      const app = new Hono().get('/hello', (context) => context.text(HELLO))
      return listening(createServer(chain(mounts, getRequestListener(app.fetch))))
    },
  },
  {
    ...H1,
    name: 'NestJS 11',
    async open(mounts) {
      const app = await NestFactory.create(AppModule, { logger: false })
      for (const { service, basePath } of mounts) {
        if (basePath === '') app.use(service.handler)
        else app.use(basePath, service.handler)
      }
      await app.listen(0, '127.0.0.1')
      return { server: app.getHttpServer() as Server, close: () => app.close() }
    },
  },
]

/** `https://127.0.0.1:port` of a host that listens. */
export function originOf({ scheme }: Host, { server }: OpenHost): string {
  return `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`
}
